"""What changed between revisions, flag by flag."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from lanes.preset_history import Change, by_flag, changes
from lanes.secret_names import MASK


@dataclass
class Said:
    """What a revision says."""

    model_file_id: int = 1
    engine: str = "llama.cpp"
    arguments: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    image: str = ""
    aliases: list[str] = field(default_factory=list)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (Said(), Said(), ()),
        (Said(), Said(model_file_id=2), (Change("model", "", "1", "2"),)),
        (Said(), Said(engine="vllm"), (Change("engine", "", "llama.cpp", "vllm"),)),
        (Said(image="a"), Said(), (Change("image", "", "a", None),)),
        (
            Said(arguments=["-c", "1"]),
            Said(arguments=["-c", "2"]),
            (Change("argument", "-c", "1", "2"),),
        ),
        (
            Said(arguments=["--temp=-1", "-fa"]),
            Said(arguments=["--temp", "-2"]),
            (Change("argument", "--temp", "-1", "-2"), Change("argument", "-fa", "", None)),
        ),
        (
            Said(arguments=["-a", "-b"]),
            Said(arguments=["-b", "-a"]),
            (Change("order", "", "-a -b", "-b -a"),),
        ),
        (
            Said(environment={"HF_TOKEN": "old"}),
            Said(environment={"HF_TOKEN": "new"}),
            (Change("variable", "HF_TOKEN", MASK, MASK),),
        ),
        (
            Said(options={"slots": None}),
            Said(options={"slots": 2}),
            (Change("option", "slots", None, "2"),),
        ),
        (
            Said(aliases=["a"]),
            Said(aliases=["b"]),
            (Change("alias", "a", "", None), Change("alias", "b", None, "")),
        ),
    ],
)
def test_changes(old: Said, new: Said, expected: tuple[Change, ...]) -> None:
    assert changes(old, new) == expected


def test_a_flag_that_comes_twice_has_both_values() -> None:
    assert by_flag(["run", "--lora", "a", "--lora=b"]) == {"": "run", "--lora": "a b"}
