"""The supervisor with real processes: the life of a server."""

import socket
from pathlib import Path

import pytest
from pytest_django import Settings

from lanes import records, supervisor
from lanes.models import Lane, LaneEvent, LoadRecord, PresetFailure, Runtime
from tests import builders, fleet

pytest_plugins = ["tests.fleet_fixtures"]
pytestmark = [pytest.mark.process, pytest.mark.django_db]


@pytest.fixture
def lane(fleet_settings: Settings, db: None) -> Lane:
    return builders.lane()


def test_an_ordered_server_becomes_ready_and_its_load_is_recorded(lane: Lane) -> None:
    runtime = fleet.make_ready(lane, fleet.preset())
    assert runtime.pid is not None
    assert runtime.pid in fleet.servers(lane.pk)
    load = LoadRecord.objects.get(lane=lane)
    assert load.succeeded
    assert 0 < load.seconds < 120
    assert list(LaneEvent.objects.filter(lane=lane).values_list("kind", flat=True)) == [
        "ready",
        "starting",
    ]


def test_a_ready_server_is_reported_with_what_it_can_do(lane: Lane) -> None:
    runtime = fleet.make_ready(lane, builders.preset(arguments=["telling", "-np", "2"]))
    assert (runtime.slots, runtime.context_length) == (3, 2048)
    assert runtime.capabilities == ["completion", "vision"]


def test_a_server_that_tells_nothing_is_known_by_its_arguments(lane: Lane) -> None:
    runtime = fleet.make_ready(lane, builders.preset(arguments=["good", "-np", "2", "-c", "64"]))
    assert (runtime.slots, runtime.context_length) == (2, 32)


def test_a_look_at_a_server_that_is_as_wanted_writes_nothing(
    lane: Lane, django_assert_num_queries: object
) -> None:
    fleet.make_ready(lane, fleet.preset())
    # lane, order, runtime, clock, failures
    with django_assert_num_queries(5):  # type: ignore[operator]
        supervisor.look(lane.pk)


def test_an_order_for_nothing_ends_the_server(lane: Lane) -> None:
    runtime = fleet.make_ready(lane, fleet.preset())
    fleet.order(lane, None)
    fleet.look_until(lane, fleet.is_phase(lane, "stopped"))
    assert not fleet.servers(lane.pk)
    runtime.refresh_from_db()
    assert runtime.exit_status == -15
    assert runtime.drain_until is not None


def test_another_target_replaces_the_server_on_another_port(lane: Lane) -> None:
    first = fleet.make_ready(lane, fleet.preset())
    second = fleet.make_ready(lane, fleet.preset())
    assert fleet.servers(lane.pk) == [second.pid]
    assert second.port != first.port
    assert Runtime.objects.filter(lane=lane, ended_at=None).count() == 1


def test_a_reload_skips_the_drain(lane: Lane) -> None:
    preset = fleet.preset()
    first = fleet.make_ready(lane, preset)
    made = fleet.order(lane, preset, is_reload=True)
    fleet.look_until(lane, fleet.is_phase(lane, "ready", made.generation))
    first.refresh_from_db()
    assert first.phase == "stopped"
    assert first.drain_until is None


def test_a_return_to_the_loaded_target_calls_the_drain_off(lane: Lane, settings: Settings) -> None:
    settings.SLOTSERVE_DRAIN_SECONDS = 60
    preset = fleet.preset()
    first = fleet.make_ready(lane, preset)
    with socket.create_connection((first.address, first.port)) as client:
        client.sendall(b"GET /hang HTTP/1.1\r\n\r\n")
        fleet.order(lane, fleet.preset())
        fleet.look_until(lane, fleet.is_phase(lane, "draining"))
        back = fleet.order(lane, preset)
        fleet.look_until(lane, fleet.is_phase(lane, "ready", back.generation))
    assert fleet.servers(lane.pk) == [first.pid]


def test_a_drain_ends_at_its_deadline_though_a_request_still_runs(
    lane: Lane, settings: Settings
) -> None:
    settings.SLOTSERVE_DRAIN_SECONDS = 0.3
    first = fleet.make_ready(lane, fleet.preset())
    with socket.create_connection((first.address, first.port)) as client:
        client.sendall(b"GET /hang HTTP/1.1\r\n\r\n")
        fleet.order(lane, None)
        fleet.look_until(lane, fleet.is_phase(lane, "stopped"))
    first.refresh_from_db()
    assert first.term_at is not None
    assert first.drain_until is not None
    assert (first.term_at - first.drain_until).total_seconds() >= 1.0


def test_a_server_that_is_no_longer_wanted_while_it_loads_ends_at_once(lane: Lane) -> None:
    fleet.order(lane, fleet.preset("never_healthy"))
    fleet.look_until(lane, lambda: bool(fleet.servers(lane.pk)))
    fleet.order(lane, None)
    fleet.look_until(lane, fleet.is_phase(lane, "stopped"))
    assert not PresetFailure.objects.exists()


def test_a_look_at_another_hosts_lane_does_nothing(lane: Lane) -> None:
    elsewhere = builders.lane(host=builders.host("other-host"))
    fleet.order(elsewhere, fleet.preset())
    supervisor.look(elsewhere.pk)
    assert not Runtime.objects.exists()


def test_the_key_is_neither_in_argv_nor_on_disk(lane: Lane, tmp_path: Path) -> None:
    runtime = fleet.make_ready(lane, fleet.preset())
    key = fleet.key_of(runtime)
    for pid in fleet.processes_of(records.installation_id()):
        assert key not in Path(f"/proc/{pid}/cmdline").read_text()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if key.encode() in path.read_bytes()]


def test_the_newest_order_is_what_starts(lane: Lane) -> None:
    for _ in range(3):
        wanted = fleet.preset()
        fleet.order(lane, wanted)
    supervisor.look(lane.pk)
    started = Runtime.objects.get(lane=lane)
    assert started.generation == 3
    assert started.revision == wanted.current


def test_a_lane_that_fails_to_be_looked_at_does_not_stop_the_others(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = builders.lane()
    fleet.order(lane, fleet.preset())
    fleet.order(other, fleet.preset())
    true_look = supervisor.look

    def look(lane_pk: int) -> None:
        if lane_pk == lane.pk:
            raise OSError("no room")
        true_look(lane_pk)

    monkeypatch.setattr(supervisor, "look", look)
    supervisor.look_host("test-host")
    assert [runtime.lane for runtime in Runtime.objects.all()] == [other]
