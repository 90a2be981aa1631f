"""Headers of safetensors files, and models in Hugging Face's form."""

import contextlib
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes.catalogue.facts import CutShortError, Facts, UnreadableError
from lanes.catalogue.inspecting import inspect
from lanes.catalogue.looking import Looker
from lanes.catalogue.safetensors import read_safetensors
from tests.model_files import Memory, hugging_face, safetensors

LATER = 2**62  # nothing was written a moment ago
WHOLE = safetensors({"a": ("BF16", (4, 8), 64), "b": ("F32", (2,), 8)})


def with_header(text: str) -> bytes:
    """A file of this header."""
    return struct.pack("<Q", len(text)) + text.encode()


def inspected(folder: Path) -> Facts | str:
    """The facts of the model in a folder, or what is wrong."""
    seen = inspect(Looker().look(str(folder)), LATER)
    return seen.trouble or seen.facts


def test_weights_are_counted_by_type() -> None:
    header = read_safetensors(Memory(WHOLE))
    assert (header.parameters, header.weights) == (34, {"BF16": 64, "F32": 8})


def test_packed_weights_count_as_what_they_hold() -> None:
    packed = safetensors({"x.qweight": ("I32", (4,), 16), "x.g_idx": ("I32", (4,), 16)})
    assert read_safetensors(Memory(packed), bits=4).parameters == 36


@pytest.mark.parametrize("length", [0, 7, 8, 40, len(WHOLE) - 1])
def test_a_file_that_is_being_copied_is_cut_short(length: int) -> None:
    with pytest.raises(CutShortError):
        read_safetensors(Memory(WHOLE[:length]))


@pytest.mark.parametrize(
    "content",
    [
        b"PK\3\4xxxxxxxxxxx",
        with_header("[]"),
        with_header("{"),
        with_header("[" * 100_000),
        with_header('{"a": 1}'),
        with_header('{"a": {"dtype": "F32", "shape": [1]}}'),
        with_header('{"a": {"dtype": 1, "shape": [], "data_offsets": [0, 0]}}'),
        with_header('{"a": {"dtype": "F32", "shape": 7, "data_offsets": [0, 0]}}'),
        with_header('{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 0]}}'),
        with_header('{"a": {"dtype": "F32", "shape": [1.5], "data_offsets": [0, 0]}}'),
        with_header('{"a": {"dtype": "F32", "shape": [], "data_offsets": [4, 0]}}'),
        with_header('{"a": {"dtype": "F32", "shape": [], "data_offsets": [0, 1, 2]}}'),
        with_header(
            '{"a": {"dtype": "F32", "shape": [' + "9" * 5000 + '], "data_offsets": [0,0]}}'
        ),
    ],
)
def test_what_is_none_is_refused_with_a_sentence(content: bytes) -> None:
    with pytest.raises(UnreadableError, match=r"\.$"):
        read_safetensors(Memory(content))


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=6))
@settings(max_examples=300)
def test_no_change_does_harm(changes: list[tuple[int, int]]) -> None:
    content = bytearray(WHOLE)
    for place, value in changes:
        content[place] = value
    with contextlib.suppress(UnreadableError):
        assert read_safetensors(Memory(bytes(content)), bits=4).parameters >= 0


def test_a_folder_tells_the_facts(tmp_path: Path) -> None:
    folder = hugging_face(tmp_path / "q")
    (folder / "chat_template.jinja").write_text("{{ x }}")
    assert inspected(folder) == Facts("Qwen2ForCausalLM", 32, "BF16", 32768, 151936, True)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"quantization_config": {"quant_method": "awq", "bits": 4}}, "awq 4-bit"),
        ({"quantization_config": {"quant_method": "fp8"}}, "fp8"),
        ({"quantization_config": 3, "torch_dtype": "float16"}, "F16"),
        ({"torch_dtype": None}, "BF16"),  # what the weights are
    ],
)
def test_the_quantisation_is_the_methods_or_the_types(
    tmp_path: Path, config: dict[str, Any], expected: str
) -> None:
    facts = inspected(hugging_face(tmp_path / "q", **config))
    assert isinstance(facts, Facts)
    assert facts.quantisation == expected


def test_models_for_images_say_it_of_their_text_part(tmp_path: Path) -> None:
    config = {"max_position_embeddings": None, "vocab_size": None}
    inner = {"text_config": {"max_position_embeddings": 77, "vocab_size": 5}}
    facts = inspected(hugging_face(tmp_path / "q", **config, **inner))
    assert isinstance(facts, Facts)
    assert (facts.context_length, facts.vocabulary_size) == (77, 5)


@pytest.mark.parametrize("template", ["{{ x }}", None])
def test_a_template_may_be_in_the_tokenizers_file(tmp_path: Path, template: str | None) -> None:
    folder = hugging_face(tmp_path / "q")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    facts = inspected(folder)
    assert isinstance(facts, Facts)
    assert facts.has_chat_template is bool(template)


@pytest.mark.parametrize("broken", ["", "[", "[]", "[" * 100_000, "\0"])
def test_a_broken_config_is_told(tmp_path: Path, broken: str) -> None:
    folder = hugging_face(tmp_path / "q")
    (folder / "config.json").write_text(broken)
    assert "Its config.json is" in str(inspected(folder))


def test_weights_that_the_index_names_and_are_not_there_are_told(tmp_path: Path) -> None:
    folder = hugging_face(tmp_path / "q")
    shards = {f"layer{n}": f"model-0000{n}-of-00005.safetensors" for n in range(1, 6)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    assert inspected(folder) == (
        "model-00001-of-00005.safetensors, model-00002-of-00005.safetensors, "
        "model-00003-of-00005.safetensors and 2 more of its weights are not there: copy the rest."
    )
