"""Presets: revisions, names, and what is left out of arguments."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from lanes.models import LaneEvent, Preset, PresetRevision
from lanes.presets import SavedPreset, as_said, save_preset
from lanes.refusals import Refusal
from tests import builders

pytestmark = pytest.mark.django_db


def save(slug: str = "qwen3", **wish: Any) -> SavedPreset | Refusal:
    """Save as an administrator; the file is the preset's present one, or a new one."""
    wish.setdefault("actor", builders.administrator())
    if "model_file" not in wish:
        known = Preset.objects.filter(slug=slug, current__isnull=False).first()
        wish["model_file"] = (
            known.current.model_file if known and known.current else builders.model_file()
        )
    return save_preset(slug=slug, **wish)


def saved(slug: str = "qwen3", **wish: Any) -> SavedPreset:
    """The same, where it must succeed."""
    done = save(slug, **wish)
    assert isinstance(done, SavedPreset), done
    return done


def refused(slug: str = "qwen3", **wish: Any) -> Refusal:
    """The same, where it must not."""
    done = save(slug, **wish)
    assert isinstance(done, Refusal), done
    return done


def test_a_new_preset_has_revision_one_and_its_name_for_a_title() -> None:
    made = saved(arguments=["-c", "4096"], environment={"TZ": "UTC"}, aliases=["Qwen/Qwen3"])
    revision = made.revision
    assert (revision.number, revision.preset.name, revision.engine) == (1, "qwen3", "llama.cpp")
    assert revision.preset.current == revision
    assert (revision.arguments, revision.aliases) == (["-c", "4096"], ["Qwen/Qwen3"])
    assert revision.created_by == builders.administrator()


def test_saving_the_same_again_makes_no_revision() -> None:
    first = saved(arguments=["-c", "4096"]).revision
    again = saved(arguments=["-c", "4096", "--port", "9"])
    assert again.revision == first
    assert len(again.notes) == 1


@pytest.mark.parametrize(
    "wish",
    [{"arguments": ["-c", "8192"]}, {"environment": {"TZ": "UTC"}}, {"aliases": ["q"]}],
)
def test_any_other_content_makes_the_next_revision(wish: dict[str, Any]) -> None:
    first = saved(arguments=["-c", "4096"]).revision
    second = saved(**{"arguments": ["-c", "4096"], **wish}).revision
    assert second.number == 2
    assert PresetRevision.objects.get(pk=first.pk).arguments == ["-c", "4096"]
    assert Preset.objects.get().current == second


def test_another_file_is_another_revision() -> None:
    saved()
    other = builders.model_file()
    assert saved(model_file=other).revision.model_file == other


def test_a_new_title_alone_makes_no_revision() -> None:
    saved()
    assert saved(name="Qwen 3 14B").revision.number == 1
    assert Preset.objects.get().name == "Qwen 3 14B"


def test_owned_flags_and_variables_are_left_out_with_notes() -> None:
    made = saved(arguments=["--host", "0.0.0.0", "-c", "1"], environment={"HF_TOKEN": "x"})
    assert made.revision.arguments == ["-c", "1"]
    assert made.revision.environment == {}
    assert made.revision.told_notes == list(made.notes)
    assert [note.split()[0] for note in made.notes] == ["--host", "HF_TOKEN"]


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        ({"arguments": "-c 4096"}, "bad_arguments"),
        ({"arguments": ["-c", 4096]}, "bad_arguments"),
        ({"arguments": None}, "bad_arguments"),
        ({"environment": ["A=1"]}, "bad_environment"),
        ({"aliases": "one two"}, "bad_aliases"),
        ({"aliases": ["with space"]}, "bad_aliases"),
        ({"aliases": [1]}, "bad_aliases"),
        ({"engine": "nothing-like-it"}, "invalid"),
        ({"name": "x" * 101}, "invalid"),
        ({"aliases": ["auto"]}, "name_taken"),
        ({"aliases": ["AUTO"]}, "name_taken"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(wish: dict[str, Any], code: str) -> None:
    assert refused(**wish).code == code
    assert not Preset.objects.exists()


@pytest.mark.parametrize("slug", ["Qwen", "a b", "-x", "", "a/b", "x" * 64])
def test_a_name_that_cannot_stand_in_an_address_is_refused(slug: str) -> None:
    assert refused(slug).code == "invalid"


def test_auto_is_no_preset_s_name() -> None:
    assert refused("auto").code == "name_taken"


def test_an_alias_may_not_be_another_preset_s_name_or_alias() -> None:
    saved("one", aliases=["first"])
    assert "one" in refused("two", aliases=["ONE"]).words
    assert refused("two", aliases=["First"]).code == "name_taken"
    assert refused("first").code == "name_taken"


def test_a_preset_may_keep_its_own_aliases() -> None:
    saved("one", aliases=["first"])
    assert saved("one", aliases=["first", "first", "1st"]).revision.aliases == ["first", "1st"]


def test_an_alias_that_an_edit_gave_up_is_free_again() -> None:
    saved("one", aliases=["first"])
    saved("one", aliases=[])
    assert saved("two", aliases=["first"]).revision.number == 1


def test_a_preset_stays_on_its_host() -> None:
    saved()
    elsewhere = builders.model_file(host=builders.host("other"))
    assert refused(model_file=elsewhere).code == "wrong_host"


@pytest.mark.parametrize("name", ["member", "stranger"])
def test_members_may_not_save_presets(name: str) -> None:
    member: User = builders.person(name)
    assert refused(actor=member).code == "not_administrator"
    assert not Preset.objects.exists()


def test_saving_what_a_preset_says_changes_nothing() -> None:
    first = saved(arguments=["-c", "1"], aliases=["a"], environment={"TZ": "UTC"}).revision
    said = as_said(first.preset)
    assert said.keys() == {
        "name",
        "model_file",
        "engine",
        "arguments",
        "environment",
        "options",
        "image",
        "aliases",
    }
    assert saved(**said).revision == first


def test_lanes_that_run_a_preset_by_default_hear_of_its_new_revision() -> None:
    preset = saved().revision.preset
    lane = builders.lane(default_preset=preset)
    saved(arguments=["-c", "1"])
    event = LaneEvent.objects.get(lane=lane)
    assert event.sentence == "administrator made revision 2 of qwen3."


def test_a_new_revision_asks_for_a_plan_and_the_same_again_does_not(
    django_capture_on_commit_callbacks: Any,
) -> None:
    with django_capture_on_commit_callbacks() as made:
        saved()
    with django_capture_on_commit_callbacks() as again:
        saved()
    assert (len(made), len(again)) == (1, 0)


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer anyway")
def test_of_two_saves_at_once_with_one_alias_one_is_refused() -> None:
    file, actor = builders.model_file(), builders.administrator()
    start = Barrier(2)

    def save_one(slug: str) -> SavedPreset | Refusal:
        start.wait(timeout=60)
        try:
            return save_preset(slug=slug, model_file=file, aliases=["shared"], actor=actor)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(save_one, ["one", "two"]))
    assert sorted(type(d).__name__ for d in done) == ["Refusal", "SavedPreset"]


@pytest.mark.parametrize(
    "image",
    ["vllm/vllm-openai:v0.11.0", "registry.lan:5000/a/b_c@sha256:" + "0" * 64, "x", "", None],
)
def test_an_image_is_kept_as_it_is_named(image: str | None) -> None:
    assert saved(image=image).revision.image == (image or "")


@pytest.mark.parametrize(
    "image", ["--privileged", "a b", "Upper", "a:", "a@sha256:12", "../a", "a" * 301, 7, ["a"]]
)
def test_what_is_no_image_is_refused(image: object) -> None:
    assert refused(image=image).code == "bad_image"


def test_another_image_is_another_revision() -> None:
    assert saved(image="a:1").revision.number == 1
    assert saved(image="a:2").revision.number == 2
