"""What the route table says of presets: by their newest server, else by their arguments."""

from datetime import timedelta
from typing import Any

import pytest

from gateway import publish
from gateway.edge.table import ModelInfo, decode_catalogue, decode_lane
from lanes.models import Host, Lane, LoadRecord, Preset
from tests import builders
from tests.builders import at
from tests.test_publish_facts import current, order, runtime

pytestmark = pytest.mark.django_db


def catalogue() -> dict[str, ModelInfo]:
    return decode_catalogue(publish.encode_facts(at(0)).parts["catalogue"])


def load(lane: Lane, preset: Preset, seconds: float, **fields: Any) -> None:
    values = {"generation": 1, "started_at": at(-seconds), "succeeded": True, **fields}
    revision = current(preset)
    LoadRecord.objects.create(lane=lane, revision=revision, seconds=seconds, **values)


def test_a_preset_that_never_ran_is_told_by_its_arguments(settings: Any) -> None:
    settings.SLOTSERVE_DISK_READ_MBPS = 10.0
    builders.preset("qwen", arguments=["-c", "8192", "-np", "2"])
    assert catalogue() == {
        "qwen": ModelInfo("qwen", 4096, ("completion",), 100_000_000, load_seconds=25.0)
    }


def test_the_newest_server_that_told_of_itself_counts() -> None:
    lane, preset = builders.lane(), builders.preset("qwen", arguments=["-c", "8192"])
    for number, context in enumerate((512, 1024, None)):
        runtime(lane, preset, context_length=context, capabilities=[f"c{number}"], ended_at=at(0))
    told = catalogue()["qwen"]
    assert (told.context_length, told.capabilities) == (1024, ("c1",))


def test_what_a_server_of_an_older_revision_told_does_not_count() -> None:
    preset = builders.preset("qwen")
    runtime(builders.lane(), preset, context_length=512)
    builders.revision(preset, arguments=["-c", "2048"])
    assert catalogue()["qwen"].context_length == 2048


def test_measured_loads_are_told_by_lane() -> None:
    lane, other, preset = builders.lane("a"), builders.lane("b"), builders.preset("qwen")
    load(lane, preset, 10.0)
    load(lane, preset, 20.04)
    load(other, preset, 99.0, succeeded=False)
    builders.lane("elsewhere", host=Host.objects.create(key="else", name="else"))
    assert catalogue()["qwen"].lane_seconds == {"a": 15.0}


def test_the_lanes_of_its_files_host_can_hold_a_preset() -> None:
    builders.preset("qwen")
    builders.lane("a")
    builders.lane("b")
    builders.lane("elsewhere", host=Host.objects.create(key="else", name="else"))
    assert catalogue()["qwen"].lanes == ("a", "b")


def test_only_the_newest_five_loads_count() -> None:
    lane, preset = builders.lane("a"), builders.preset("qwen")
    load(lane, preset, 1000.0, started_at=at(0) - timedelta(days=1))
    for number in range(5):
        load(lane, preset, 10.0, started_at=at(-number))
    assert catalogue()["qwen"].lane_seconds == {"a": 10.0}


def test_a_preset_without_a_revision_or_a_measured_file_says_less() -> None:
    Preset.objects.create(slug="none")
    builders.preset("new", model_file=builders.model_file(size_bytes=0))
    assert catalogue() == {"new": ModelInfo("new", None, ("completion",))}


def test_a_ready_server_tells_its_slots() -> None:
    lane, preset = builders.lane("fast"), builders.preset("qwen")
    order(lane, preset)
    runtime(lane, preset, slots=4)
    upstream = decode_lane(publish.encode_facts(at(0)).parts["lane:fast"]).upstream
    assert upstream is not None
    assert upstream.slots == 4
