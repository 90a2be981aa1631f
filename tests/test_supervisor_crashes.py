"""Workers killed at any instant, doubled, overlapping: no orphan, no second server, no lost exit.

The fixture checks after each test that no process is left and that no lane ever had two servers.
"""

import socket
import subprocess
import threading
from pathlib import Path

import pytest
from django.db import connection
from pytest_django import Settings

from lanes import clock, records, starting, supervisor, tasks
from lanes.models import Lane, LoadRecord, PresetFailure, Runtime
from tests import builders, fleet

pytest_plugins = ["tests.fleet_fixtures"]
pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def lane(fleet_settings: Settings, transactional_db: None) -> Lane:
    return builders.lane()


@pytest.mark.parametrize("moment", ["after the row", "in the order", "after the spawn"])
def test_a_worker_killed_while_it_starts_a_server(lane: Lane, moment: str) -> None:
    made = fleet.order(lane, fleet.preset())
    with fleet.Worker(lane, die_at=moment) as worker:
        assert worker.wait() == -9
    assert Runtime.objects.get(lane=lane).phase == "starting"
    fleet.look_until(lane, fleet.is_phase(lane, "ready", made.generation))
    assert len(fleet.servers(lane.pk)) == 1
    assert not PresetFailure.objects.exists()


def test_a_worker_killed_after_the_spawn_is_succeeded_by_adoption(lane: Lane) -> None:
    fleet.order(lane, fleet.preset())
    with fleet.Worker(lane, die_at="after the spawn") as worker:
        worker.wait()
    fleet.look_until(lane, fleet.is_phase(lane, "ready"))
    assert Runtime.objects.filter(lane=lane).count() == 1


def test_a_shim_on_its_way_is_waited_for_whatever_the_clock_says(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[subprocess.Popen[bytes]] = []
    with monkeypatch.context() as patch:
        patch.setattr(starting, "_hand_over", lambda child, _order: waiting.append(child))
        fleet.order(lane, fleet.preset())
        supervisor.look(lane.pk)
    fleet.until(lambda: bool(fleet.processes_of(records.installation_id())))
    for year in (2020, 2040):
        Runtime.objects.update(started_at=clock.database_now().replace(year=year, day=1))
        supervisor.look(lane.pk)
    assert Runtime.objects.get(lane=lane).phase == "starting"
    assert waiting[0].poll() is None
    waiting[0].communicate()


def test_a_worker_killed_while_a_server_loads(lane: Lane) -> None:
    fleet.order(lane, fleet.preset("never_healthy"))
    with fleet.Worker(lane):
        fleet.until(lambda: bool(fleet.servers(lane.pk)))
        fleet.until(lambda: Runtime.objects.filter(pid__isnull=False).exists())
    adopted = fleet.servers(lane.pk)
    supervisor.look(lane.pk)
    assert fleet.servers(lane.pk) == adopted
    assert Runtime.objects.get(lane=lane).pid == adopted[0]


def test_a_worker_killed_while_a_server_is_ready(lane: Lane) -> None:
    fleet.order(lane, fleet.preset())
    with fleet.Worker(lane):
        fleet.until(fleet.is_phase(lane, "ready"))
    adopted = fleet.servers(lane.pk)
    supervisor.look(lane.pk)
    assert fleet.servers(lane.pk) == adopted
    assert len(fleet.starts(lane)) == 1


def test_a_worker_killed_while_a_server_drains(lane: Lane, settings: Settings) -> None:
    settings.SLOTSERVE_DRAIN_SECONDS = 1.5
    first = fleet.make_ready(lane, fleet.preset())
    with socket.create_connection((first.address, first.port)) as client:
        client.sendall(b"GET /hang HTTP/1.1\r\n\r\n")
        made = fleet.order(lane, fleet.preset())
        with fleet.Worker(lane):
            fleet.until(fleet.is_phase(lane, "draining"))
        first.refresh_from_db()
        deadline = first.drain_until
        fleet.look_until(lane, fleet.is_phase(lane, "ready", made.generation))
    first.refresh_from_db()
    assert (first.phase, first.drain_until) == ("stopped", deadline)


def test_a_worker_killed_while_a_server_stops(lane: Lane) -> None:
    first = fleet.make_ready(lane, fleet.preset("deaf"))
    made = fleet.order(lane, fleet.preset())
    with fleet.Worker(lane):
        fleet.until(fleet.is_phase(lane, "stopping"))
    fleet.look_until(lane, fleet.is_phase(lane, "ready", made.generation))
    first.refresh_from_db()
    assert (first.phase, first.exit_status) == ("stopped", -9)


def test_an_exit_while_no_worker_lives_is_not_lost(lane: Lane) -> None:
    first = fleet.make_ready(lane, fleet.preset())
    assert first.pid is not None
    fleet.kill(first.pid)
    record = records.read_record(lane.pk)
    assert record is not None
    fleet.until(lambda: not record.is_shim_alive)
    supervisor.look(lane.pk)
    first.refresh_from_db()
    assert (first.phase, first.exit_status) == ("failed", -9)


def test_an_exit_status_written_while_a_look_reads_is_not_lost(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fleet.make_ready(lane, fleet.preset())
    stale = records.read_record(lane.pk)
    assert stale is not None
    assert first.pid is not None
    fleet.kill(first.pid)
    fleet.until(lambda: not stale.is_shim_alive)
    true_read, early = records.read_record, [stale]
    read = lambda pk: early.pop() if early else true_read(pk)  # noqa: E731
    monkeypatch.setattr(records, "read_record", read)
    supervisor.look(lane.pk)
    first.refresh_from_db()
    assert first.exit_status == -9


def test_a_server_killed_before_a_minute_waits_for_its_retry(lane: Lane) -> None:
    first = fleet.make_ready(lane, fleet.preset())
    assert first.pid is not None
    fleet.kill(first.pid)
    fleet.look_until(lane, fleet.is_phase(lane, "failed"))
    supervisor.look(lane.pk)
    assert PresetFailure.objects.get(lane=lane).count == 1
    assert LoadRecord.objects.get(lane=lane).succeeded  # it failed after its load
    assert not fleet.servers(lane.pk)


def test_a_server_killed_after_a_minute_restarts_at_once(lane: Lane) -> None:
    first = fleet.make_ready(lane, fleet.preset())
    assert first.pid is not None
    assert first.ready_at is not None
    Runtime.objects.update(ready_at=first.ready_at.replace(year=2020))
    fleet.kill(first.pid)
    fleet.look_until(lane, lambda: Runtime.objects.filter(lane=lane).count() == 2)
    fleet.look_until(lane, fleet.is_phase(lane, "ready"))
    assert PresetFailure.objects.get(lane=lane).count == 0


def test_a_minute_of_being_ready_is_success_though_nobody_looked(lane: Lane) -> None:
    first = fleet.make_ready(lane, fleet.preset())
    assert first.pid is not None
    assert first.ready_at is not None
    PresetFailure.objects.create(
        lane=lane, revision=first.revision, count=5, failed_at=clock.database_now()
    )
    Runtime.objects.update(ready_at=first.ready_at.replace(year=2020))
    fleet.kill(first.pid)
    record = records.read_record(lane.pk)
    assert record is not None
    fleet.until(lambda: not record.is_shim_alive)
    fleet.look_until(lane, lambda: Runtime.objects.filter(lane=lane).count() == 2)
    assert PresetFailure.objects.get(lane=lane).count == 0


def test_a_killed_shim_takes_its_server_along(lane: Lane) -> None:
    first = fleet.make_ready(lane, fleet.preset("forks"))
    assert first.shim_pid is not None
    fleet.kill(first.shim_pid)
    fleet.look_until(lane, fleet.is_phase(lane, "failed"))
    assert not fleet.servers(lane.pk)


def test_two_workers_for_one_host_start_one_server(lane: Lane) -> None:
    with fleet.Worker(lane), fleet.Worker(lane):
        for _ in range(4):
            made = fleet.order(lane, fleet.preset())
            fleet.until(fleet.is_phase(lane, "ready", made.generation))
    assert len(fleet.starts(lane)) == 4
    assert len(fleet.servers(lane.pk)) == 1


def test_a_task_delivered_many_times_at_once_starts_one_server(lane: Lane) -> None:
    fleet.order(lane, fleet.preset())
    in_threads(8, lambda: tasks.look(lane.pk, "ss:tick:look:test"))
    fleet.look_until(lane, fleet.is_phase(lane, "ready"))
    assert len(fleet.starts(lane)) == 1


def test_a_server_whose_record_was_deleted_is_ended_and_not_forgotten(lane: Lane) -> None:
    made = fleet.make_ready(lane, fleet.preset())
    records.record_path(lane.pk).unlink()
    records.lock_path(lane.pk).unlink()
    Runtime.objects.update(started_at=made.started_at.replace(year=2020))
    fleet.look_until(lane, lambda: Runtime.objects.filter(ended_at__isnull=False).exists())
    assert made.pid not in fleet.servers(lane.pk)


def test_a_server_of_a_lane_that_is_no_more_is_swept(lane: Lane) -> None:
    fleet.make_ready(lane, fleet.preset())
    pk = lane.pk
    Runtime.objects.all().delete()
    lane.delete()
    supervisor.look_host("test-host")
    fleet.until(lambda: not fleet.servers(pk))  # a killed process takes a moment to end


def test_a_server_without_a_row_is_swept_before_a_start(lane: Lane) -> None:
    preset = fleet.preset()
    fleet.make_ready(lane, preset)
    Runtime.objects.all().delete()
    fleet.look_until(lane, fleet.is_phase(lane, "ready"))
    assert len(fleet.servers(lane.pk)) == 1


def test_other_peoples_processes_are_never_touched(lane: Lane, tmp_path: Path) -> None:
    other = builders.lane()
    kept = fleet.make_ready(other, fleet.preset())
    fleet.make_ready(lane, fleet.preset("forks"))
    fleet.order(lane, None)
    fleet.look_until(lane, fleet.is_phase(lane, "stopped"))
    assert fleet.servers(other.pk) == [kept.pid]


def in_threads(count: int, work: object) -> None:
    """Run it at once in so many threads, each with a connection of its own."""

    def run() -> None:
        try:
            work()  # type: ignore[operator]
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
