"""Presets that are archived, and models that are forgotten while their history is kept."""

from pathlib import Path

import pytest

from bookings import choices
from bookings.deleting import InTheWay, archive_preset, bring_back_preset, delete_preset
from bookings.rules import Wish, preset_objection
from gateway.route_catalogue import read_presets
from lanes import clock, services
from lanes.catalogue.reading import models_for_people
from lanes.catalogue.registering import forget_model_file, register_model_file
from lanes.catalogue.scanning import scan_host
from lanes.models import ModelFile, ModelFolder, Preset
from lanes.presets import save_preset
from lanes.refusals import Refusal
from tests import builders
from tests.builders import NOON, administrator, at, person
from tests.test_api_bookings import signed_in
from tests.test_web_pages import signed_in as pages_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "database_now", lambda: NOON)


def archived(slug: str = "old") -> Preset:
    """A preset that was booked once and is archived."""
    preset = builders.preset(slug)
    builders.booking(preset=preset, start=at(-60), end=NOON)
    assert archive_preset(preset, actor=administrator()) is None
    return preset


def code(answer: object) -> str:
    assert isinstance(answer, Refusal), answer
    return answer.code


def test_a_preset_that_was_booked_can_be_archived_and_brought_back() -> None:
    preset = archived()
    assert preset not in Preset.objects.offered()
    assert [facts.slug for facts in read_presets()] == []
    assert bring_back_preset(preset, actor=administrator()) is None
    assert preset in Preset.objects.offered()
    assert [facts.slug for facts in read_presets()] == ["old"]


def test_what_is_booked_or_a_default_is_not_archived() -> None:
    booked, default = builders.preset(), builders.preset()
    coming = builders.booking(preset=booked)
    builders.lane("wants-it", default_preset=default)
    refusal = archive_preset(booked, actor=administrator())
    assert isinstance(refusal, InTheWay)
    assert refusal.booking_ids == (coming.pk,)
    wanted = archive_preset(default, actor=administrator())
    assert isinstance(wanted, InTheWay)
    assert "the default of wants-it" in wanted.words


def test_an_archived_preset_is_neither_booked_nor_chosen_nor_a_default() -> None:
    preset, lane = archived(), builders.lane()
    actor = administrator()
    assert code(preset_objection(Wish(lane, "model", preset, NOON, at(60)))) == "archived"
    assert code(choices.choose(lane, preset=preset, until=at(60), actor=actor)) == "archived"
    assert code(services.save_lane(lane, actor=actor, default_preset=preset)) == "archived"


def test_a_deletion_that_history_forbids_says_to_archive() -> None:
    preset = builders.preset()
    builders.booking(preset=preset, start=at(-60), end=NOON)
    refusal = delete_preset(preset, actor=administrator())
    assert refusal is not None
    assert "archive it instead" in refusal.words


def test_members_archive_nothing() -> None:
    preset, member = builders.preset(), person("member")
    assert code(archive_preset(preset, actor=member)) == "not_administrator"
    assert code(bring_back_preset(preset, actor=member)) == "not_administrator"


def test_over_rest_an_archived_preset_is_read_but_not_listed() -> None:
    client = signed_in(administrator())
    preset = archived()
    one, listed = "/api/v1/presets/old/", "/api/v1/presets/"
    assert client.get(one).json()["archived_at"] == "2030-01-15T12:00:00Z"
    assert client.get(listed).json()["results"] == []
    shown = client.get(listed, {"archived": "true"}).json()["results"]
    assert [each["slug"] for each in shown] == [preset.slug]
    assert client.post(one + "bring-back/").json()["archived_at"] is None
    assert client.post(one + "archive/").json()["archived_at"] is not None


def test_pages_offer_no_archived_preset_and_its_own_brings_it_back() -> None:
    client = pages_of("administrator")
    archived()
    builders.lane()
    assert "preset:old" not in client.get("/book/").content.decode()
    page = client.get("/administration/presets/old/").content.decode()
    assert "Bring back" in page
    client.post("/administration/presets/old/bring-back/")
    assert "preset:old" in client.get("/book/").content.decode()
    client.post("/administration/presets/old/archive/")
    assert "preset:old" not in client.get("/book/").content.decode()


def test_a_model_of_old_revisions_alone_is_forgotten_and_they_keep_its_name() -> None:
    file, preset = builders.model_file(), builders.preset("small")
    builders.revision(preset, model_file=file)
    builders.revision(preset, model_file=builders.model_file())
    assert forget_model_file(file, actor=administrator()) is None
    assert file not in models_for_people()
    assert preset.revisions.get(number=2).model_file.name == file.name


def test_the_model_of_an_archived_preset_is_forgotten_and_comes_back_with_it() -> None:
    preset = archived()
    assert preset.current is not None
    file = preset.current.model_file
    assert forget_model_file(file, actor=administrator()) is None
    assert file not in models_for_people()
    bring_back_preset(preset, actor=administrator())
    assert file in models_for_people()


def test_forget_is_offered_where_it_works() -> None:
    client = pages_of("administrator")
    held, old = builders.model_file(), builders.model_file()
    preset = builders.preset(model_file=old)
    builders.revision(preset, model_file=held)
    page = client.get("/administration/models/").content.decode()
    assert f"/administration/models/{old.pk}/forget/" in page
    assert f"/administration/models/{held.pk}/forget/" not in page
    assert code(forget_model_file(held, actor=administrator())) == "in_use"


def test_a_forgotten_model_comes_back_by_a_new_revision_or_by_hand() -> None:
    actor, preset = administrator(), builders.preset("small")
    file = builders.model_file(host=builders.host("far"), forgotten_at=NOON)
    other = builders.model_file(forgotten_at=NOON)
    made = register_model_file(host=file.host, path=file.path, name="again", actor=actor)
    assert made == file
    save_preset(slug=preset.slug, model_file=other, actor=actor)
    assert {file, other} <= set(models_for_people())


def test_a_scanned_folder_shows_a_forgotten_model_again(tmp_path: Path) -> None:
    (tmp_path / "q.gguf").write_bytes(b"x" * 123)
    folder = ModelFolder.objects.create(host=builders.host(), path=str(tmp_path))
    scan_host("test-host")
    ModelFile.objects.update(forgotten_at=NOON)
    scan_host("test-host")
    assert ModelFile.objects.get(folder=folder).forgotten_at is None


def test_a_preset_that_is_deleted_takes_forgotten_models_with_it() -> None:
    preset = builders.preset(model_file=builders.model_file(forgotten_at=NOON))
    assert delete_preset(preset, actor=administrator()) is None
    assert not ModelFile.objects.exists()
