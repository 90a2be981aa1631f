"""What usage is worked out from: the time that bookings held, requests ran, servers were ready."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.db.models import Q

from bookings.models import Booking
from gateway.intervals import Interval
from gateway.models import UsageRecord
from lanes.models import Runtime

SHORT = timedelta(minutes=1)
LONGEST = timedelta(days=1)  # of a request: one that began before does not reach into a day


def held(booking: Booking, first: datetime, last: datetime) -> Interval:
    """What of the booking's time in progress lies in [first, last); end before start: nothing."""
    start, end = max(booking.active_from, first), min(booking.end, last)
    return start.timestamp(), end.timestamp()


def busy_times(
    booking_ids: Iterable[int] | None, first: datetime, last: datetime
) -> dict[int, list[Interval]]:
    """When requests ran, by booking; None: of all bookings. One query.

    A request runs from when it was given a slot of the model server until its answer ended.
    """
    reaches_in = Q(at__gte=first - SHORT) | Q(duration_ms__gte=SHORT.total_seconds() * 1000)
    records = UsageRecord.objects.filter(reaches_in, at__gte=first - LONGEST, at__lt=last)
    records = records.filter(booking_id_for__isnull=False).exclude(preset="")
    if booking_ids is not None:
        records = records.filter(booking_id_for__in=booking_ids)
    found: dict[int, list[Interval]] = defaultdict(list)
    rows = records.order_by().values_list("booking_id_for", "at", "queue_ms", "duration_ms")
    for booking_id, at, queue_ms, duration_ms in rows.iterator(chunk_size=10_000):
        arrived = at.timestamp()
        found[booking_id or 0].append((arrived + queue_ms / 1000, arrived + duration_ms / 1000))
    return found


def ready_times(
    lane_ids: Iterable[int], first: datetime, last: datetime
) -> Mapping[int, list[Interval]]:
    """When a model server was ready to answer, by lane; one query."""
    alive = Q(ended_at=None) | Q(ended_at__gt=first)
    rows = Runtime.objects.filter(alive, lane__in=lane_ids, ready_at__lt=last).values_list(
        "lane_id", "ready_at", "term_at", "ended_at"
    )
    found: dict[int, list[Interval]] = defaultdict(list)
    for lane_id, ready_at, term_at, ended_at in rows:
        end = min(term_at or last, ended_at or last, last)
        if ready_at is not None:
            found[lane_id].append((ready_at.timestamp(), end.timestamp()))
    return found
