"""What hosts keep of models, cards and programs is told in the reader's language on every page."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from lanes import log_reading, telling, validation
from lanes.catalogue.inspecting import trouble_columns
from lanes.models import (
    GpuState,
    HostGpus,
    HostReport,
    LlamaServer,
    ModelFile,
    ModelFolder,
    catalogue,
)
from lanes.preset_notes import notes_of
from tests import builders, log_world
from tests.gpu_cast import gpu_lane
from wire.words import Words, kept_of, remade, said, together

pytestmark = pytest.mark.django_db
WHY = said("It went away while it was looked at.")
KEPT = {"trouble": str(WHY), "words": kept_of(WHY)}
TOLD, OLD = "[It went away while it was looked at.]", "An old sentence."


@pytest.fixture(autouse=True)
def _another_language(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each text that is translated stands in brackets."""
    for module in (telling, catalogue):
        monkeypatch.setattr(module, "gettext", lambda text: f"[{text}]")


@pytest.fixture
def boss() -> Client:
    client = Client()
    client.force_login(builders.administrator())
    return client


def shown(client: Client, url: str) -> str:
    page = client.get(url)
    assert page.status_code == 200
    return page.content.decode()


@pytest.mark.parametrize(
    "url",
    [
        "/administration/",
        "/administration/models/",
        "/models/",
        "/models/presets/small/",
    ],
)
def test_of_a_model(boss: Client, url: str) -> None:
    file = builders.model_file()
    builders.preset("small", model_file=file)
    ModelFile.objects.filter(pk=file.pk).update(**trouble_columns(WHY))
    assert TOLD in shown(boss, url)
    ModelFile.objects.filter(pk=file.pk).update(trouble=OLD, words=None)
    assert OLD in shown(boss, url)
    ModelFile.objects.filter(pk=file.pk).update(trouble="", missing_since=timezone.now())
    assert "[Its file is not there any more" in shown(boss, url)


def test_of_a_folder(boss: Client) -> None:
    folder = ModelFolder.objects.create(host=builders.host(), path="/m", **KEPT)
    assert TOLD in shown(boss, "/administration/models/")
    ModelFolder.objects.filter(pk=folder.pk).update(trouble=OLD, words=None)
    assert OLD in shown(boss, "/administration/models/")


def test_of_a_card_and_its_driver(boss: Client) -> None:
    lane = gpu_lane()
    now = timezone.now()
    HostGpus.objects.create(host=lane.host, read_at=now, **KEPT)
    other = said("The NVIDIA driver does not answer.")
    card = {"trouble": str(other), "words": kept_of(other)}
    GpuState.objects.create(gpu=lane.gpus.get(), read_at=now, **card)
    page = shown(boss, f"/lanes/{lane.slug}/gpus/")
    assert TOLD in page
    assert "[The NVIDIA driver does not answer.]" in page
    assert "[The NVIDIA driver does not answer.]" in shown(boss, "/administration/hosts/")


def test_of_a_hosts_driver(boss: Client) -> None:
    host = builders.host()
    words = said("driver {version}, {count} cards", version="560", count=2)
    HostReport.objects.create(
        host=host,
        at=timezone.now() - timedelta(seconds=1),
        version="1",
        machine="box",
        clock_skew=0,
        disk_free_bytes=1,
        disk_total_bytes=2,
        driver="well",
        driver_words=str(words),
        words=kept_of(words),
        servers_run_as="nobody",
        is_user_shared=False,
    )
    assert "[driver 560, 2 cards]" in shown(boss, "/administration/hosts/")


def test_of_a_hosts_llama_server() -> None:
    preset = builders.preset("small")
    assert preset.current
    host = preset.current.model_file.host
    LlamaServer.objects.create(host=host, identity="x", asked_at=timezone.now(), **KEPT)
    assert any(TOLD in note for note in notes_of(preset))


def test_of_a_log() -> None:
    run = log_world.run(builders.lane())
    note = log_reading._note(run, is_there=False)
    assert isinstance(note, Words)
    again = remade(str(note), kept_of(note))
    assert telling.tell(again).startswith("[The server has written nothing yet")


def test_of_columns_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "gettext", lambda text: f"[{text}]")
    lane = builders.lane()
    lane.slug = "Not this"
    refusal = validation.refusal_of(lane)
    assert refusal
    assert refusal.words.startswith("[short name]: ")


def test_nothing_is_told_of_what_is_well() -> None:
    columns = trouble_columns(together(" ", []))
    assert columns == {"trouble": "", "words": None}
    assert ModelFile(**columns).warning == ""
