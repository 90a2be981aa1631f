"""Without a broker: services answer at once, and the next beat after its return does the work."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from bookings import services
from bookings.models import Booking, Kind
from gateway import tasks, tokens
from gateway.edge.table import decode_lane, decode_tokens
from lanes import clock, ticks
from lanes.models import Order
from lanes.refusals import Refusal
from tests import builders
from tests.conftest import ValkeyServer
from wire.edges import TABLE_PARTS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.valkey]


@pytest.fixture(autouse=True)
def _close(valkey: str) -> Iterator[None]:
    yield
    ticks.valkey().close()


def part(name: str) -> bytes:
    payload = ticks.valkey().hget(TABLE_PARTS, name)
    assert isinstance(payload, bytes)
    return payload


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses before a message is tried again: six seconds of them, were they not turned off."""
    made: list[float] = []
    monkeypatch.setattr("kombu.utils.functional.sleep", made.append)
    return made


def book() -> Booking:
    made = services.book(
        owner=builders.person(),
        lane=builders.lane("fast"),
        kind=Kind.MODEL,
        preset=builders.preset(),
        start=None,
        end=clock.database_now() + timedelta(hours=1),
    )
    assert isinstance(made, Booking)
    return made


def test_a_booking_answers_at_once_and_takes_effect_when_the_broker_is_back(
    valkey_server: ValkeyServer, waits: list[float]
) -> None:
    valkey_server.stop()
    booking = book()
    assert waits == []
    assert not Order.objects.exists()
    valkey_server.start()
    tasks.beat()
    assert Order.objects.get().booking_id_for == booking.pk
    assert decode_lane(part("lane:fast")).grants[0].booking_id == booking.pk


def test_a_token_revoked_without_a_broker_is_gone_when_it_is_back(
    valkey_server: ValkeyServer, waits: list[float]
) -> None:
    made = tokens.create_token(
        owner=builders.person(), name="n", scopes=["inference"], lanes=[], expires_at=None
    )
    assert not isinstance(made, Refusal)
    tasks.beat()
    assert decode_tokens(part("tokens"))
    valkey_server.stop()
    assert tokens.revoke(made[0], actor=builders.person()) is None
    assert waits == []
    valkey_server.start()
    tasks.beat()
    assert not decode_tokens(part("tokens"))


def test_a_beat_without_a_broker_ends_soon(valkey_server: ValkeyServer, waits: list[float]) -> None:
    builders.host()
    valkey_server.stop()
    tasks.beat()
    assert waits == []
