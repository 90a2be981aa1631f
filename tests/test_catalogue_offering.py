"""A preset from a model in one step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.catalogue import offering
from lanes.catalogue.offering import preset_of, suggested_slug
from lanes.models import GONE, ModelFile, Preset, PresetRevision, slug_validator
from lanes.refusals import Refusal
from tests import builders


def made(file: ModelFile, slug: str = "") -> PresetRevision:
    """The preset's revision."""
    saved = preset_of(file, actor=builders.administrator(), slug=slug)
    assert not isinstance(saved, Refusal), saved
    assert saved.notes == ()
    return saved.revision


def refused(file: ModelFile, slug: str = "") -> Refusal:
    """Why not."""
    refusal = preset_of(file, actor=builders.administrator(), slug=slug)
    assert isinstance(refusal, Refusal)
    assert not Preset.objects.filter(current__model_file=file).exists()
    return refusal


@pytest.mark.django_db
def test_a_preset_has_the_models_name_and_arguments_that_fit() -> None:
    file = builders.model_file(context_length=131_072, projector_path="/m/mmproj-q.gguf")
    ModelFile.objects.filter(pk=file.pk).update(name="Qwen 2.5 VL (7B)")
    file.refresh_from_db()
    revision = made(file)
    assert (revision.preset.slug, revision.preset.name) == ("qwen-2.5-vl-7b", "Qwen 2.5 VL (7B)")
    assert revision.arguments == ["-c", "8192", "--mmproj", "/m/mmproj-q.gguf"]
    assert (revision.engine, revision.model_file) == ("llama.cpp", file)


@pytest.mark.django_db
@pytest.mark.parametrize("length", [None, 4096, 8192])
def test_a_small_context_is_left_to_the_model(length: int | None) -> None:
    assert made(builders.model_file(context_length=length)).arguments == []


@pytest.mark.django_db
def test_a_second_preset_gets_another_name_and_a_wished_one_is_kept() -> None:
    file = builders.model_file()
    slugs = [made(file).preset.slug, made(file).preset.slug, made(file, "mine").preset.slug]
    assert slugs == [file.name, f"{file.name}-2", "mine"]


@pytest.mark.django_db
def test_what_cannot_be_made_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    builders.preset("taken", aliases=["Other-Name"])
    assert refused(builders.model_file(), "taken").code == "name_taken"
    assert refused(builders.model_file(), "other-name").code == "name_taken"
    assert refused(builders.model_file(), "auto").code == "name_taken"
    assert refused(builders.model_file(), "Not a name").code == "invalid"
    assert refused(builders.model_file(missing_since=builders.NOON)).words == GONE
    monkeypatch.setattr(offering, "engine_of", lambda kind, known: None)
    assert refused(builders.model_file(kind="huggingface")).code == "no_engine"


@pytest.mark.django_db
def test_members_make_none() -> None:
    refusal = preset_of(builders.model_file(), actor=builders.person("member"))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "not_administrator"


@pytest.mark.parametrize(
    ("kind", "known", "engine"),
    [
        ("gguf", ["llama.cpp", "vllm"], "llama.cpp"),
        ("huggingface", ["llama.cpp", "vllm", "sglang"], "vllm"),
        ("huggingface", ["llama.cpp", "sglang"], "sglang"),
        ("huggingface", ["llama.cpp"], None),
    ],
)
def test_the_engine_is_one_that_loads_its_form(kind: str, known: list[str], engine: str) -> None:
    assert offering.engine_of(kind, known) == engine


@given(st.text(max_size=200), st.sets(st.text(max_size=3)))
def test_a_suggested_name_is_always_a_free_one(name: str, taken: set[str]) -> None:
    first = suggested_slug(name, taken)
    for slug in (first, suggested_slug(name, taken | {first})):
        slug_validator(slug)
        assert slug not in taken
        assert len(slug) <= 63
