"""The supervisor with cards: memory is awaited after a stop, and counted before a load."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from bookings.failure_notices import tell_failures
from lanes import supervisor
from lanes.gpus import gate
from lanes.gpus.outsiders import Verdict
from lanes.gpus.stored import verdict_to_json
from lanes.models import GpuState, HostGpus, Lane, Notice, Preset, PresetFailure, Runtime
from tests import builders, fleet, gpu_cast
from tests.gpu_cast import GIB, sentences
from tests.nvml.driver import FakeDriver

pytest_plugins = ["tests.fleet_fixtures", "tests.nvml.fixtures"]
pytestmark = [pytest.mark.process, pytest.mark.django_db]


@pytest.fixture
def lane(fleet_settings: Settings, db: None) -> Lane:
    """A lane on GPU-a."""
    return gpu_cast.gpu_lane()


@pytest.fixture
def stranger() -> Iterator[int]:
    """The pid of a process that no lane owns."""
    with gpu_cast.stranger() as pid:
        yield pid


def preset(gibibytes: int) -> Preset:
    """A preset whose file is so large."""
    file = builders.model_file(size_bytes=gibibytes * GIB)
    return builders.preset(arguments=["good"], model_file=file)


def poll(times: int = 1) -> None:
    """Look at the whole host so often, as if five seconds lay between."""
    for _ in range(times):
        HostGpus.objects.update(read_at=timezone.now() - timedelta(minutes=1))
        supervisor.look_host("test-host")


def test_the_next_server_waits_until_the_memory_of_the_last_is_back(
    lane: Lane, driver: FakeDriver
) -> None:
    fleet.make_ready(lane, fleet.preset())
    driver.hold(more=8 * GIB)
    fleet.order(lane, fleet.preset())
    fleet.look_until(lane, fleet.is_phase(lane, "stopped"))
    supervisor.look(lane.pk)
    assert not fleet.servers(lane.pk)
    driver.hold()
    fleet.look_until(lane, fleet.is_phase(lane, "ready"))


def test_memory_that_never_comes_back_holds_a_lane_up_for_ten_seconds_only(
    lane: Lane, driver: FakeDriver
) -> None:
    first = fleet.make_ready(lane, fleet.preset())
    driver.hold(more=8 * GIB)
    fleet.order(lane, fleet.preset())
    fleet.look_until(lane, fleet.is_phase(lane, "stopped"))
    Runtime.objects.filter(pk=first.pk).update(ended_at=first.started_at - timedelta(seconds=11))
    fleet.look_until(lane, fleet.is_phase(lane, "ready"))


def test_what_outsiders_hold_is_not_waited_for_after_a_stop(
    lane: Lane, driver: FakeDriver, stranger: int
) -> None:
    driver.hold((stranger, 8 * GIB))
    poll(2)
    fleet.make_ready(lane, fleet.preset())
    fleet.make_ready(lane, fleet.preset())  # at once: fleet waits ten seconds at most


def test_a_load_without_room_is_not_begun_and_says_who_is_in_the_way(
    lane: Lane, driver: FakeDriver, stranger: int
) -> None:
    driver.hold((stranger, 11 * GIB), more=0)
    poll(2)
    wanted = preset(14)
    fleet.order(lane, wanted)
    fleet.look_until(lane, PresetFailure.objects.exists)
    failure = PresetFailure.objects.get()
    assert (failure.count, failure.failure_kind, failure.revision) == (
        1,
        "gpu_taken",
        wanted.current,
    )
    assert failure.reason.startswith("Needs 14.5 GiB of GPU memory, 13.0 GiB free: a python")
    assert f"(pid {stranger}) holds 11.0 GiB" in failure.reason
    assert sentences(lane, "blocked") == [f"{wanted} is not loaded: {failure.reason}"]
    assert not Runtime.objects.exists()
    supervisor.look(lane.pk)
    failure.refresh_from_db()
    assert failure.count == 1


def test_a_booking_that_others_block_is_told_to_its_owner(
    lane: Lane, driver: FakeDriver, stranger: int
) -> None:
    driver.hold((stranger, 11 * GIB))
    poll(2)
    wanted = preset(14)
    now = timezone.now()
    booked = builders.booking(lane=lane, preset=wanted, start=now, end=now + timedelta(hours=1))
    order = fleet.order(lane, wanted)
    order.booking_id_for = booked.pk
    order.save()
    fleet.look_until(lane, PresetFailure.objects.exists)
    assert tell_failures(now) == 1
    notice = Notice.objects.get()
    assert notice.recipient == booked.owner
    assert "Needs 14.5 GiB of GPU memory, 13.0 GiB free: a python" in notice.sentence
    assert f"(pid {stranger}) holds 11.0 GiB" in notice.sentence
    assert "as soon as the memory is free" in notice.advice


def test_a_smaller_model_is_loaded_beside_an_outsider(
    lane: Lane, driver: FakeDriver, stranger: int
) -> None:
    driver.hold((stranger, 11 * GIB))
    poll(2)
    fleet.make_ready(lane, preset(12))


def test_the_load_begins_as_soon_as_the_outsider_has_left(
    lane: Lane, driver: FakeDriver, stranger: int
) -> None:
    driver.hold((stranger, 11 * GIB))
    poll(2)
    fleet.order(lane, preset(14))
    fleet.look_until(lane, PresetFailure.objects.exists)
    driver.hold()
    poll()
    assert PresetFailure.objects.get().count == 1  # one clean poll proves nothing
    poll()
    assert PresetFailure.objects.get().count == 0
    fleet.look_until(lane, fleet.is_phase(lane, "ready"))
    assert len(sentences(lane, "memory")) == 1


def test_an_outsider_that_has_just_come_is_judged_before_anything_is_begun(
    lane: Lane, driver: FakeDriver, stranger: int
) -> None:
    poll(2)
    driver.hold((stranger, 11 * GIB))
    poll()
    fleet.order(lane, preset(14))
    supervisor.look(lane.pk)
    assert not Runtime.objects.exists()
    assert not PresetFailure.objects.exists()
    poll()
    fleet.look_until(lane, PresetFailure.objects.exists)


def test_readings_that_never_settle_hold_a_load_up_for_a_minute_only(
    lane: Lane, driver: FakeDriver
) -> None:
    driver.hold(more=11 * GIB)
    poll()
    made = fleet.order(lane, preset(14))
    supervisor.look(lane.pk)
    assert not Runtime.objects.exists()
    made.ordered_at -= timedelta(seconds=gate.UNCLEAR_SECONDS + 1)
    made.save()
    fleet.look_until(lane, fleet.is_phase(lane, "ready"))


def test_a_verdict_that_is_not_renewed_holds_nothing_up(lane: Lane, driver: FakeDriver) -> None:
    driver.hold(more=11 * GIB)
    long_ago = timezone.now() - timedelta(minutes=5)
    GpuState.objects.create(
        gpu=lane.gpus.get(), read_at=long_ago, verdict=verdict_to_json(Verdict())
    )
    fleet.make_ready(lane, preset(14))


@pytest.mark.usefixtures("no_driver")
def test_a_driver_that_does_not_answer_holds_nothing_up(lane: Lane) -> None:
    fleet.make_ready(lane, preset(14))


def test_what_a_ready_server_holds_is_what_it_needs_next_time(
    lane: Lane, driver: FakeDriver, stranger: int
) -> None:
    wanted = preset(4)
    runtime = fleet.make_ready(lane, wanted)
    assert runtime.pid is not None
    driver.hold((runtime.pid, 15 * GIB))
    poll()
    runtime.refresh_from_db()
    assert runtime.gpu_bytes == 15 * GIB
    assert wanted.current is not None
    assert gate.needed_by(lane, wanted.current) == 15 * GIB
    driver.hold((runtime.pid, 9 * GIB))
    poll()
    runtime.refresh_from_db()
    assert runtime.gpu_bytes == 15 * GIB


def test_memory_that_stays_in_use_after_a_stop_is_told(lane: Lane, driver: FakeDriver) -> None:
    runtime = fleet.make_ready(lane, fleet.preset())
    driver.hold(more=3 * GIB)
    fleet.order(lane, None)
    fleet.look_until(lane, fleet.is_phase(lane, "stopped"))
    poll()
    assert sentences(lane, "memory") == []
    Runtime.objects.filter(pk=runtime.pk).update(ended_at=timezone.now() - timedelta(seconds=31))
    poll(2)
    assert sentences(lane, "memory") == [
        "3.0 GiB of GPU memory is still in use though the model server has ended"
    ]


def test_a_poll_that_fails_keeps_no_lane_from_its_look(
    lane: Lane, driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr("lanes.gpus.polling.enrol", broken)
    fleet.order(lane, fleet.preset())
    supervisor.look_host("test-host")
    assert Runtime.objects.filter(lane=lane).exists()
