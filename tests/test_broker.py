"""A real worker and a real beat: bookings take effect, at once and after the broker was away."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import kombu.pools
import psutil
import pytest
from celery import current_app
from pytest_django import Settings

from bench.fake_llama_server import write_wrapper
from bookings import services
from bookings.models import Booking, Kind
from gateway.edge.table import LaneRoute, decode_lane
from lanes import clock, ticks
from lanes.models import Lane, Preset, Runtime
from slotserve.broker import celery_url
from tests import builders, fleet
from tests.conftest import ValkeyServer
from tests.worker import BEAT, WORKER, celery, environment
from wire.edges import TABLE_PARTS

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.valkey,
    pytest.mark.process,
]
pytest_plugins = ["tests.fleet_fixtures"]


@pytest.fixture
def stack(
    fleet_settings: Settings, valkey: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[psutil.Process]:
    """Worker and beat on this test's database and Valkey; the test itself sends to that Valkey."""
    program = write_wrapper(tmp_path / "llama-server")
    env = environment(tmp_path, valkey, SLOTSERVE_LLAMA_SERVER=str(program))
    queues = f"plan,{ticks.host_queue(fleet_settings.SLOTSERVE_HOST_KEY)}"
    monkeypatch.setattr(current_app.conf, "broker_write_url", celery_url(valkey))
    _forget_broker()
    log = tmp_path / "celery.log"
    with celery(*WORKER, "-Q", queues, env=env, log=log) as worker, celery(*BEAT, env=env, log=log):
        yield psutil.Process(worker.pid)
    _forget_broker()
    ticks.valkey().close()


def _forget_broker() -> None:
    """Have Celery connect anew, to the address that is configured then."""
    kombu.pools.reset()
    current_app._pool = None  # type: ignore[attr-defined]
    current_app.amqp._producer_pool = None  # type: ignore[attr-defined]


def book_now(lane: Lane, preset: Preset) -> Booking:
    made = services.book(
        owner=builders.person(),
        lane=lane,
        kind=Kind.MODEL,
        preset=preset,
        start=None,
        end=clock.database_now() + timedelta(hours=1),
    )
    assert isinstance(made, Booking)
    return made


def part(lane: Lane) -> LaneRoute | None:
    payload = ticks.valkey().hget(TABLE_PARTS, f"lane:{lane.slug}")
    return decode_lane(payload) if isinstance(payload, bytes) else None


def serves(lane: Lane, preset: Preset) -> bool:
    shown = part(lane)
    if shown is None or shown.upstream is None:
        return False
    return shown.phase == "ready" and shown.upstream.preset == preset.slug


@pytest.mark.usefixtures("stack")
def test_a_booking_is_planned_loaded_and_published() -> None:
    lane, preset = builders.lane(), builders.preset()
    booking = book_now(lane, preset)
    fleet.until(lambda: serves(lane, preset))
    shown = part(lane)
    assert shown is not None
    assert [grant.booking_id for grant in shown.grants] == [booking.pk]


@pytest.mark.usefixtures("stack")
def test_a_booking_made_while_the_broker_is_down_takes_effect_when_it_is_back(
    valkey_server: ValkeyServer,
) -> None:
    lane, preset = builders.lane(), builders.preset()
    fleet.until(lambda: part(lane) is not None)
    valkey_server.stop()
    book_now(lane, preset)
    assert not Runtime.objects.exists()
    valkey_server.start()
    fleet.until(lambda: serves(lane, preset))


def test_ticks_leak_no_connections_to_the_database(stack: psutil.Process) -> None:
    lane = builders.lane()
    fleet.until(lambda: part(lane) is not None)

    def connections() -> int:
        database = [f for f in stack.open_files() if f.path.endswith(".sqlite3")]
        return len(database) + len([c for c in stack.net_connections() if c.raddr])

    for _ in range(40):
        ticks.request_plan()
        fleet.until(lambda: not ticks.valkey().exists("ss:tick:plan"))
    assert connections() <= 8 * 2  # one a thread, and what is open while it is counted
