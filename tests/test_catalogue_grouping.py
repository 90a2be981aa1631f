"""Which files are one model."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.catalogue.grouping import FileSeen, Found, group, hard_links, stem_of

_inode = count(1)


def seen(path: str, **fields: object) -> FileSeen:
    """A file of ten bytes."""
    values = {"size": 10, "modified_ns": 0, "device": 1, "inode": next(_inode)}
    return FileSeen(path=path, **{**values, **fields})  # type: ignore[arg-type]


def grouped(*paths: str) -> list[Found]:
    """The models among files of these paths."""
    return group(seen(path) for path in paths)


def projectors(*paths: str) -> dict[str, str | None]:
    """Each model's projector, by names."""
    return {
        each.name: each.projector.name if each.projector else None
        for each in grouped(*(f"/m/{path}" for path in paths))
    }


def test_each_gguf_is_a_model_and_other_files_are_none() -> None:
    found = grouped("/m/b.GGUF", "/m/a.gguf", "/m/README.md", "/m/x.safetensors")
    assert [(each.path, each.name, each.size) for each in found] == [
        ("/m/a.gguf", "a", 10),
        ("/m/b.GGUF", "b", 10),
    ]


def test_parts_are_one_model_under_the_first_ones_path() -> None:
    parts = [f"/m/q-0000{n}-of-00003.gguf" for n in (3, 1, 2)]
    (found,) = grouped(*parts)
    assert (found.path, found.name) == ("/m/q-00001-of-00003.gguf", "q")
    assert (found.size, len(found.files), found.parts) == (30, 3, 3)


def test_parts_without_the_first_are_still_that_model() -> None:
    (found,) = grouped("/m/q-00002-of-00003.gguf")
    assert (found.path, len(found.files), found.parts) == ("/m/q-00001-of-00003.gguf", 1, 3)


def test_parts_of_other_folders_and_numbers_are_other_models() -> None:
    found = grouped(
        "/m/q-00001-of-00002.gguf", "/m/q-00001-of-00003.gguf", "/n/q-00002-of-00002.gguf"
    )
    assert len(found) == 3


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["a-Q4_K_M.gguf", "mmproj-a-f16.gguf"], {"a-Q4_K_M": "mmproj-a-f16.gguf"}),
        (["Gemma-3-Q8_0.gguf", "mmproj-model-f16.gguf"], {"Gemma-3-Q8_0": "mmproj-model-f16.gguf"}),
        (["a.gguf", "a.mmproj-Q8_0.gguf"], {"a": "a.mmproj-Q8_0.gguf"}),
        (
            ["a-Q4_0.gguf", "a-IQ3_XXS.gguf", "mmproj-BF16.gguf", "mmproj-F32.gguf"],
            {"a-Q4_0": "mmproj-BF16.gguf", "a-IQ3_XXS": "mmproj-BF16.gguf"},
        ),
        (
            ["a-Q4_0.gguf", "mmproj-bf16.gguf", "mmproj-f16.gguf"],
            {"a-Q4_0": "mmproj-f16.gguf"},
        ),
        (
            ["a-Q4_0.gguf", "other-Q4_0.gguf", "mmproj-a-F16.gguf"],
            {"a-Q4_0": "mmproj-a-F16.gguf", "other-Q4_0": None},
        ),
        (
            ["aa-Q4_0.gguf", "bb-Q4_0.gguf", "mmproj-F16.gguf"],
            {"aa-Q4_0": None, "bb-Q4_0": None},
        ),
        (
            ["Q-7B-Q4_K_M.gguf", "mmproj-maker_Q-7B-f16.gguf"],
            {"Q-7B-Q4_K_M": "mmproj-maker_Q-7B-f16.gguf"},
        ),
        (["mmproj-a.gguf"], {}),
    ],
)
def test_a_projector_goes_with_its_model(files: list[str], expected: dict[str, str | None]) -> None:
    assert projectors(*files) == expected


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("Qwen3-14B-Q4_K_M.gguf", "qwen3-14b"),
        ("Qwen3-14B-UD-IQ2_XXS.gguf", "qwen3-14b"),
        ("mmproj-F16.gguf", ""),
        ("mmproj-model-f16.gguf", ""),
        ("gpt-oss-20b-MXFP4.gguf", "gpt-oss-20b"),
        ("Q8_0.gguf", ""),
    ],
)
def test_a_stem_is_the_name_without_the_grade(name: str, stem: str) -> None:
    assert stem_of(name) == stem


def test_a_folder_with_config_and_weights_is_a_model() -> None:
    (found,) = grouped("/m/q/config.json", "/m/q/b.safetensors", "/m/q/a.safetensors")
    assert (found.kind, found.path, found.name, found.size) == ("huggingface", "/m/q", "q", 20)


def test_the_cache_of_the_hub_gives_the_models_own_name() -> None:
    folder = "/c/models--Qwen--Qwen3-8B/snapshots/abc"
    (found,) = grouped(f"{folder}/config.json", f"{folder}/model.safetensors")
    assert found.name == "Qwen/Qwen3-8B"


@pytest.mark.parametrize(
    "files",
    [
        ["/m/q/config.json"],
        ["/m/q/model.safetensors"],
        ["/m/i/model_index.json", "/m/i/unet/config.json", "/m/i/unet/x.safetensors"],
    ],
)
def test_what_is_only_part_of_a_model_is_none(files: list[str]) -> None:
    assert grouped(*files) == []


def test_weights_in_a_second_form_are_not_counted_twice() -> None:
    (found,) = grouped("/m/config.json", "/m/consolidated.safetensors", "/m/model.safetensors")
    assert found.size == 10


def test_a_link_beside_what_it_leads_to_is_no_second_model() -> None:
    files = [seen("/m/a.gguf", inode=5, is_link=True), seen("/m/x/real.gguf", inode=5)]
    assert [each.path for each in group(files)] == ["/m/x/real.gguf"]


@pytest.mark.parametrize("change", ["size", "modified_ns", "inode", "device"])
def test_a_fingerprint_differs_with_what_changed(change: str) -> None:
    before = seen("/m/a.gguf", inode=1)
    after = seen("/m/a.gguf", **{"inode": 1, change: 99})
    assert group([before])[0].fingerprint != group([after])[0].fingerprint
    assert group([before])[0].fingerprint == group([before])[0].fingerprint


NAMES = st.sampled_from(
    [
        "a.gguf",
        "a-Q4_0.gguf",
        "mmproj.gguf",
        "a-00001-of-00002.gguf",
        "a-00002-of-00002.gguf",
        "a-99999-of-99999.gguf",
        "a-00000-of-00000.gguf",
        ".gguf",
        "config.json",
        "x.safetensors",
    ]
)


@given(st.sets(st.tuples(st.sampled_from(["/m", "/m/n"]), NAMES)))
def test_no_file_is_in_two_models_and_no_path_twice(places: set[tuple[str, str]]) -> None:
    found = grouped(*(f"{folder}/{name}" for folder, name in places))
    paths = [each.path for model in found for each in model.files]
    assert len(paths) == len(set(paths))
    assert len({model.path for model in found}) == len(found)
    assert all(model.name and model.files for model in found)


def test_hard_links_are_one_model_and_told() -> None:
    files = [seen(f"/m/{name}.gguf", inode=7_000_000) for name in "abcd"]
    files.append(seen("/m/link.gguf", inode=7_000_000, is_link=True))
    assert [each.path for each in group(files)] == ["/m/a.gguf"]
    words = "3 are the same file as /m/a.gguf (hard links), which stands for them."
    assert hard_links(files) == [words]


def test_nothing_is_told_of_files_with_one_name() -> None:
    files = [seen("/m/a.gguf"), seen("/m/b.gguf"), seen("/m/config.json", inode=7_000_001)]
    assert hard_links([*files, seen("/n/config.json", inode=7_000_001)]) == []
