"""Drains with edges that work, die or lose Valkey, and clocks that jump, with real servers."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
from pytest_django import Settings

from lanes import clock, records, supervisor, ticks
from lanes.models import Lane, PresetFailure, Runtime
from tests import builders, fleet
from tests.conftest import ValkeyServer
from wire.edges import EDGES, EdgeReport, LaneCount, encode_report

pytest_plugins = ["tests.fleet_fixtures"]
pytestmark = [pytest.mark.process, pytest.mark.valkey, pytest.mark.django_db]


@pytest.fixture
def lane(fleet_settings: Settings, db: None, valkey: str) -> Lane:
    fleet_settings.SLOTSERVE_DRAIN_SECONDS = 30.0
    return builders.lane()


def edge_says(lane: Lane, generation: int, in_flight: int, *, seconds_ago: float = 0) -> None:
    """An edge's report in Valkey."""
    at_ms = int((time.time() - seconds_ago) * 1000)
    report = EdgeReport("edge-1", at_ms, {lane.slug: LaneCount(generation, in_flight)})
    ticks.valkey().hset(EDGES, "edge-1", encode_report(report))


@contextmanager
def request_to(runtime: Runtime) -> Iterator[socket.socket]:
    """A request that the server answers only when its client leaves."""
    with socket.create_connection((runtime.address, runtime.port)) as client:
        client.sendall(b"GET /hang HTTP/1.1\r\n\r\n")
        yield client


def looked(lane: Lane, times: int = 5) -> Runtime:
    """The newest runtime after some looks."""
    for _ in range(times):
        supervisor.look(lane.pk)
    runtime = fleet.newest(lane)
    assert runtime is not None
    return runtime


def test_the_drain_ends_when_the_edge_has_echoed_zero(lane: Lane) -> None:
    server = fleet.make_ready(lane, fleet.preset())
    edge_says(lane, server.generation, 1)
    made = fleet.order(lane, None)
    with request_to(server):
        assert looked(lane).phase == "draining"
        edge_says(lane, made.generation, 1)
        assert looked(lane).phase == "draining"
        edge_says(lane, made.generation, 0)
        fleet.look_until(lane, fleet.is_phase(lane, "stopped"))


def test_zero_of_an_older_generation_is_not_zero(lane: Lane) -> None:
    server = fleet.make_ready(lane, fleet.preset())
    edge_says(lane, server.generation, 0)
    fleet.order(lane, None)
    assert looked(lane).phase == "draining"


def test_an_edge_killed_while_its_request_runs_is_excused_when_the_socket_closes(
    lane: Lane,
) -> None:
    server = fleet.make_ready(lane, fleet.preset())
    edge_says(lane, server.generation, 1, seconds_ago=6)  # its last word
    fleet.order(lane, None)
    with request_to(server):
        assert looked(lane).phase == "draining"
    fleet.look_until(lane, fleet.is_phase(lane, "stopped"))


def test_an_emptied_valkey_does_not_cut_a_request_off(
    lane: Lane, valkey_server: ValkeyServer
) -> None:
    server = fleet.make_ready(lane, fleet.preset())
    edge_says(lane, server.generation, 1)
    supervisor.look_host("test-host")
    fleet.order(lane, None)
    with request_to(server):
        valkey_server.stop()
        assert looked(lane).phase == "draining"
        valkey_server.start()
        assert looked(lane).phase == "draining"
    fleet.look_until(lane, fleet.is_phase(lane, "stopped"))


def test_an_unreachable_valkey_does_not_hold_a_drain_beyond_its_deadline(
    lane: Lane, valkey_server: ValkeyServer, settings: Settings
) -> None:
    settings.SLOTSERVE_DRAIN_SECONDS = 0.2
    server = fleet.make_ready(lane, fleet.preset())
    valkey_server.stop()
    fleet.order(lane, None)
    with request_to(server):
        fleet.look_until(lane, fleet.is_phase(lane, "stopped"))


def test_another_owners_restart_drains_first(lane: Lane) -> None:
    preset = fleet.preset()
    server = fleet.make_ready(lane, preset)
    made = fleet.order(lane, preset, is_fresh=True)
    with request_to(server):
        assert looked(lane).phase == "draining"
    fleet.look_until(lane, fleet.is_phase(lane, "ready", made.generation))
    assert len(fleet.starts(lane)) == 2


@pytest.fixture
def step_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves the database's clock by so many seconds from now on."""
    true_clock = clock.database_now
    steps = [0.0]

    def stepped() -> datetime:
        return true_clock() + timedelta(seconds=sum(steps))

    monkeypatch.setattr(clock, "database_now", stepped)
    return steps.append


STEPS = [7200.0, -7200.0]


@pytest.mark.parametrize("seconds", STEPS)
def test_the_clock_jumps_while_a_server_loads(
    lane: Lane, step_clock: Callable[[float], None], seconds: float
) -> None:
    fleet.order(lane, fleet.preset())
    supervisor.look(lane.pk)
    fleet.look_until(lane, lambda: records.read_record(lane.pk) is not None)
    step_clock(seconds)
    fleet.look_until(lane, fleet.is_phase(lane, "ready"))
    assert Runtime.objects.filter(phase="ready").count() == 1
    assert not PresetFailure.objects.exists()


@pytest.mark.parametrize("seconds", STEPS)
def test_the_clock_jumps_right_after_the_spawn(
    lane: Lane, step_clock: Callable[[float], None], seconds: float
) -> None:
    fleet.order(lane, fleet.preset())
    supervisor.look(lane.pk)
    step_clock(seconds)
    fleet.look_until(lane, fleet.is_phase(lane, "ready"))
    assert len(fleet.servers(lane.pk)) == 1


@pytest.mark.parametrize("seconds", STEPS)
def test_the_clock_jumps_while_a_server_is_ready(
    lane: Lane, step_clock: Callable[[float], None], seconds: float
) -> None:
    server = fleet.make_ready(lane, fleet.preset())
    step_clock(seconds)
    assert looked(lane).phase == "ready"
    assert fleet.servers(lane.pk) == [server.pid]


def test_a_clock_set_back_never_makes_a_drain_longer_than_its_limit(
    lane: Lane, step_clock: Callable[[float], None], settings: Settings
) -> None:
    settings.SLOTSERVE_DRAIN_SECONDS = 0.5
    server = fleet.make_ready(lane, fleet.preset())
    fleet.order(lane, None)
    with request_to(server):
        assert looked(lane, 1).phase == "draining"
        step_clock(-7200)
        fleet.look_until(lane, fleet.is_phase(lane, "stopped"))


@pytest.mark.parametrize("seconds", STEPS)
def test_the_clock_jumps_while_a_deaf_server_stops(
    lane: Lane, step_clock: Callable[[float], None], seconds: float
) -> None:
    fleet.make_ready(lane, fleet.preset("deaf"))
    fleet.order(lane, None)
    fleet.look_until(lane, fleet.is_phase(lane, "stopping"))
    step_clock(seconds)
    fleet.look_until(lane, fleet.is_phase(lane, "stopped"))
    assert not fleet.servers(lane.pk)
