"""The supervisor with servers that fail, and with bad citizens."""

import socket
from datetime import timedelta

import pytest
from pytest_django import Settings

from lanes import acting, ending, records, supervisor, ticks
from lanes.models import Lane, LaneEvent, LoadRecord, Order, PresetFailure, Runtime
from tests import builders, fleet

pytest_plugins = ["tests.fleet_fixtures"]
pytestmark = [pytest.mark.process, pytest.mark.django_db]


@pytest.fixture
def lane(fleet_settings: Settings, db: None) -> Lane:
    return builders.lane()


def test_a_server_that_never_gets_healthy_fails_and_waits_for_its_retry(
    lane: Lane, settings: Settings
) -> None:
    settings.SLOTSERVE_LOAD_TIMEOUT_SECONDS = 0.5
    fleet.order(lane, fleet.preset("never_healthy"))
    fleet.look_until(lane, fleet.is_phase(lane, "failed"))
    supervisor.look(lane.pk)
    failure = PresetFailure.objects.get(lane=lane)
    assert failure.count == 1
    assert failure.reason == "It did not become ready within 0.5 s."
    assert failure.failure_kind == "timeout"
    assert failure.since == failure.failed_at
    assert not fleet.servers(lane.pk)
    assert Runtime.objects.count() == 1


def test_a_server_that_dies_at_once_fails_with_what_its_log_says(lane: Lane) -> None:
    fleet.order(lane, fleet.preset("dies_at_once"))
    fleet.look_until(lane, fleet.is_phase(lane, "failed"))
    failed = fleet.newest(lane)
    assert failed is not None
    assert failed.exit_status == 3
    assert failed.reason == "It ended with status 3; the last error in its log may say why."
    assert (failed.failure_kind, failed.failure_line) == ("unknown", "no room for the model")
    assert not LoadRecord.objects.get(lane=lane).succeeded


def test_a_failure_names_the_booking_that_the_order_was_for(lane: Lane) -> None:
    fleet.order(lane, fleet.preset(fleet.NO_PROGRAM))
    Order.objects.update(booking_id_for=77)
    fleet.look_until(lane, fleet.is_phase(lane, "failed"))
    assert PresetFailure.objects.get(lane=lane).booking_id_for == 77


def test_a_program_that_is_not_there_fails_with_a_sentence(lane: Lane) -> None:
    fleet.order(lane, fleet.preset(fleet.NO_PROGRAM))
    fleet.look_until(lane, fleet.is_phase(lane, "failed"))
    failure = PresetFailure.objects.get(lane=lane)
    assert failure.reason.startswith("It could not be started: ")
    assert "No such file" in failure.reason
    assert failure.failure_kind == "program"
    assert failure.failure_advice == "Install what is missing on the host."


def test_a_server_that_is_deaf_to_term_is_killed_within_the_stop_timeout(lane: Lane) -> None:
    runtime = fleet.make_ready(lane, fleet.preset("deaf"))
    fleet.order(lane, None)
    fleet.look_until(lane, fleet.is_phase(lane, "stopped"))
    runtime.refresh_from_db()
    assert runtime.exit_status == -9
    assert runtime.signals_sent == 3
    assert runtime.ended_at is not None
    assert runtime.term_at is not None
    assert (runtime.ended_at - runtime.term_at).total_seconds() < 15


def test_a_grandchild_in_its_own_session_is_swept_before_the_next_start(lane: Lane) -> None:
    fleet.make_ready(lane, fleet.preset("forks"))
    assert len(fleet.servers(lane.pk)) == 2
    second = fleet.make_ready(lane, fleet.preset())
    assert fleet.servers(lane.pk) == [second.pid]


def test_a_grandchild_alone_keeps_the_lane_locked(lane: Lane) -> None:
    runtime = fleet.make_ready(lane, fleet.preset("forks"))
    record = records.read_record(lane.pk)
    assert record is not None
    assert runtime.pid is not None
    fleet.kill(runtime.pid)
    fleet.until(lambda: not record.is_shim_alive)
    assert records.is_locked(lane.pk)


def test_what_no_signal_ends_is_swept_often_only_at_first(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = fleet.make_ready(lane, fleet.preset("forks"))
    asked: list[float] = []
    monkeypatch.setattr(acting, "_sweeps", {})
    monkeypatch.setattr(ticks, "request_look", lambda *_, delay=0.0: asked.append(delay))
    assert runtime.pid is not None
    with monkeypatch.context() as patch:
        patch.setattr(ending, "send", lambda *_: False)  # as by another user's, or in the kernel
        fleet.kill(runtime.pid)
        fleet.until(lambda: not records.read_record(lane.pk).is_shim_alive)  # type: ignore[union-attr]
        for _ in range(3 * acting.SOON_SWEEPS):
            supervisor.look(lane.pk)
        assert records.is_locked(lane.pk)
        assert len([delay for delay in asked if delay]) == acting.SOON_SWEEPS
    fleet.look_until(lane, lambda: not records.is_locked(lane.pk))


def test_an_answer_from_somebody_elses_process_is_not_ready(
    lane: Lane, settings: Settings, foreign_server: int
) -> None:
    settings.SLOTSERVE_PORT_FIRST = settings.SLOTSERVE_PORT_LAST = foreign_server
    fleet.order(lane, fleet.preset("silent"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lanes.ports.is_free", lambda _address, _port: True)
        fleet.look_until(lane, fleet.is_phase(lane, "failed"))
    failed = fleet.newest(lane)
    assert failed is not None
    assert failed.ready_at is None
    assert failed.reason.startswith("Another program listens on port ")
    assert failed.failure_kind == "port_taken"


def test_what_the_log_names_counts_more_than_a_stranger_on_the_port(
    lane: Lane, settings: Settings, foreign_server: int
) -> None:
    settings.SLOTSERVE_PORT_FIRST = settings.SLOTSERVE_PORT_LAST = foreign_server
    fleet.order(lane, fleet.preset("silent"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lanes.ports.is_free", lambda _address, _port: True)
        patch.setattr("lanes.acting.read_tail", lambda *_: "OSError: No space left on device")
        fleet.look_until(lane, fleet.is_phase(lane, "failed"))
    failed = fleet.newest(lane)
    assert failed is not None
    assert failed.failure_kind == "disk_full"


def test_a_server_that_answers_without_its_key_is_given_up_at_once(lane: Lane) -> None:
    fleet.order(lane, fleet.preset("keyless"))
    fleet.look_until(lane, fleet.is_phase(lane, "failed"))
    failed = fleet.newest(lane)
    assert failed is not None
    assert failed.reason == "It answers without its API key at /props."
    assert (failed.failure_kind, failed.failure_advice[:27]) == (
        "argument",
        "It has to ask for the key i",
    )


def test_a_health_path_that_is_none_is_said_when_the_time_is_over(
    lane: Lane, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet.FakeEngine, "health_path", "/nope")
    fleet.order(lane, fleet.preset())
    fleet.look_until(lane, lambda: _is_listening(lane))
    settings.SLOTSERVE_LOAD_TIMEOUT_SECONDS = 0.1
    fleet.look_until(lane, fleet.is_phase(lane, "failed"))
    failed = fleet.newest(lane)
    assert failed is not None
    assert failed.reason == (
        "It did not become ready within 0.1 s: Its health path /nope answers 401."
    )
    assert "health path" in failed.failure_advice


def test_no_port_is_said_once(lane: Lane, settings: Settings, foreign_server: int) -> None:
    settings.SLOTSERVE_PORT_FIRST = settings.SLOTSERVE_PORT_LAST = foreign_server
    fleet.order(lane, fleet.preset())
    supervisor.look(lane.pk)
    supervisor.look(lane.pk)
    assert LaneEvent.objects.get(lane=lane).sentence.startswith("no port from")


def test_a_minute_of_being_ready_clears_the_failures(lane: Lane) -> None:
    runtime = fleet.make_ready(lane, fleet.preset())
    assert runtime.ready_at is not None
    failure = PresetFailure.objects.create(
        lane=lane, revision=runtime.revision, count=3, failed_at=runtime.ready_at
    )
    supervisor.look(lane.pk)
    failure.refresh_from_db()
    assert failure.count == 3
    Runtime.objects.update(ready_at=runtime.ready_at - timedelta(seconds=60))
    supervisor.look(lane.pk)
    failure.refresh_from_db()
    assert (failure.count, failure.failed_at) == (0, None)
    assert not failure.reason + failure.failure_kind + failure.failure_advice


def _is_listening(lane: Lane) -> bool:
    runtime = fleet.newest(lane)
    with socket.socket() as client:
        return runtime is not None and not client.connect_ex((runtime.address, runtime.port))
