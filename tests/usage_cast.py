"""Usage records as edges report them, and as the table holds them."""

from dataclasses import replace
from itertools import count
from typing import Any

from bookings.models import Booking
from gateway.models import UsageRecord
from lanes.models import Runtime
from tests import builders
from wire.usage import Usage

_serial = count(1)
ARRIVAL = builders.NOON.timestamp()
CALL = Usage(
    request_id="r-1",
    at=ARRIVAL,
    route="/v1/chat/completions",
    status=200,
    duration_ms=812.5,
    first_byte_ms=40.0,
    preset="qwen",
    bytes_in=10,
    bytes_out=2000,
    queue_ms=250.5,
    prompt_tokens=5,
    cached_tokens=3,
    is_estimated=True,
    completion_tokens=60,
)


def many(how_many: int) -> list[Usage]:
    """So many, each of a request of its own."""
    return [replace(CALL, request_id=f"r-{number}") for number in range(how_many)]


def record(booking: Booking | None = None, **fields: Any) -> UsageRecord:
    """A request as it is in the table: answered, a minute long, of the booking."""
    fields.setdefault("request_id", f"u-{next(_serial)}")
    fields.setdefault("route", "/v1/chat/completions")
    fields.setdefault("status", 200)
    fields.setdefault("duration_ms", 60_000)
    if booking is not None:
        preset = booking.preset.slug if booking.preset else ""
        told = {"booking_id_for": booking.pk, "owner": booking.owner, "lane": booking.lane}
        fields = {"at": booking.start, "preset": preset, **told, **fields}
    return UsageRecord.objects.create(**fields)


def served(booking: Booking, *, ready: float, until: float | None = None) -> Runtime:
    """A server of the booking's preset, ready so many minutes after noon, until others."""
    assert booking.preset is not None
    assert booking.preset.current is not None
    ended = None if until is None else builders.at(until)
    return Runtime.objects.create(
        lane=booking.lane,
        revision=booking.preset.current,
        generation=1,
        phase="ready" if ended is None else "stopped",
        phase_since=builders.at(ready),
        started_at=builders.at(ready - 2),
        ready_at=builders.at(ready),
        ended_at=ended,
        address="127.0.0.1",
        port=18100,
        sealed_key="-",
    )
