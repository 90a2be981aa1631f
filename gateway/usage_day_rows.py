"""The rows of one day's usage: worked out, and written where they differ from what is held."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Q, Sum

from bookings.models import Booking, Kind, State
from gateway.models import UsageDay, UsageRecord
from gateway.shares import shares_of
from gateway.usage import BATCH
from gateway.usage_facts import busy_times, held, ready_times
from lanes.models import Lane

COUNTS = ("requests", "refused", "prompt_tokens", "completion_tokens")
TIMES = ("used_seconds", "loading_seconds", "idle_seconds", "unmeasured_seconds")
NAMES = ("owner_name", "lane_name")
Key = tuple[int, int, str, int]  # owner, lane or 0, preset or "", booking or 0


@dataclass(slots=True)
class DayRows:
    """The rows of a day by what they are about."""

    day: date
    people: dict[int, str]
    lanes: dict[int, str]
    rows: dict[Key, UsageDay] = field(default_factory=dict)

    def row(self, key: Key) -> UsageDay:
        """The one row of this key."""
        owner, lane, preset, booking = key
        if key not in self.rows:
            self.rows[key] = UsageDay(
                day=self.day,
                owner_id_for=owner,
                owner_name=self.people.get(owner, ""),
                lane_id_for=lane,
                lane_name=self.lanes.get(lane, ""),
                preset=preset,
                booking_id_for=booking,
            )
        return self.rows[key]


def wanted_rows(day: date, first: datetime, last: datetime, now: datetime) -> DayRows:
    """What should be held of the day [first, last) at `now`; six queries.

    Requests of whoever was deleted since are nobody's any more, so that they are left to the rows
    that are held.
    """
    found = DayRows(
        day,
        people=dict(User.objects.values_list("pk", "username")),
        lanes=dict(Lane.objects.values_list("pk", "name")),
    )
    _add_requests(found, first, last)
    _add_times(found, first, min(last, now))
    return found


def write_rows(held_rows: list[UsageDay], wanted: DayRows) -> int:
    """Make the table hold the wanted rows, and keep those of people and lanes that are gone; says
    how many were written or deleted."""
    kept = [row for row in held_rows if _is_gone(row, wanted)]
    _leave_to_kept(wanted, kept)
    kept_keys = {row.pk for row in kept}
    by_key = {_key(row): row for row in held_rows if row.pk not in kept_keys}
    changed = []
    for key, row in wanted.rows.items():
        before = by_key.pop(key, None)
        if before is None or _values(before) != _values(row):
            changed.append(row)
    gone = [row.pk for row in by_key.values()]
    for batch in _batches(changed):
        with transaction.atomic():
            UsageDay.objects.bulk_create(
                batch,
                update_conflicts=True,
                unique_fields=["day", "owner_id_for", "lane_id_for", "preset", "booking_id_for"],
                update_fields=[*NAMES, *TIMES, *COUNTS],
            )
    for pks in _batches(gone):
        UsageDay.objects.filter(pk__in=pks).delete()
    return len(changed) + len(gone)


def _add_requests(found: DayRows, first: datetime, last: datetime) -> None:
    records = UsageRecord.objects.filter(at__gte=first, at__lt=last, owner__isnull=False)
    keys = ("owner_id", "lane_id", "preset", "booking_id_for")
    counted = (
        records.order_by()
        .values_list(*keys)
        .annotate(
            all=Count("pk"),
            not_served=Count("pk", filter=~Q(code="")),
            prompts=Sum("prompt_tokens"),
            answers=Sum("completion_tokens"),
        )
    )
    for owner, lane, preset, booking, *counts in counted:
        row = found.row((owner, lane or 0, preset, booking or 0))
        for name, count in zip(COUNTS, counts, strict=True):
            setattr(row, name, count or 0)


def _add_times(found: DayRows, first: datetime, last: datetime) -> None:
    claims = Booking.objects.filter(state=State.CONFIRMED, start__lt=last, end__gt=first)
    bookings = list(claims.order_by().select_related("preset"))
    if not bookings:
        return
    busy = busy_times(None, first, last)
    ready = ready_times({booking.lane_id for booking in bookings}, first, last)
    for booking in bookings:
        shares = shares_of(
            held(booking, first, last),
            busy=busy.get(booking.pk, ()),
            ready=ready.get(booking.lane_id, ()),
            is_measured=booking.kind == Kind.MODEL,
        )
        if shares.booked:
            preset = booking.preset.slug if booking.preset else ""
            row = found.row((booking.owner_id, booking.lane_id, preset, booking.pk))
            for name in TIMES:
                setattr(row, name, round(getattr(shares, name.removesuffix("_seconds")), 3))


def _is_gone(row: UsageDay, wanted: DayRows) -> bool:
    has_lane = row.lane_id_for == 0 or row.lane_id_for in wanted.lanes
    return row.owner_id_for not in wanted.people or not has_lane


def _leave_to_kept(wanted: DayRows, kept: Iterable[UsageDay]) -> None:
    """Requests to a lane that is gone look as if none had been asked: they are counted already."""
    for row in kept:
        key = (row.owner_id_for, 0, row.preset, row.booking_id_for)
        twin = wanted.rows.get(key)
        if twin is None or row.lane_id_for == 0:
            continue
        for name in COUNTS:
            setattr(twin, name, max(0, getattr(twin, name) - getattr(row, name)))
        if not twin.requests:
            del wanted.rows[key]


def _key(row: UsageDay) -> Key:
    return row.owner_id_for, row.lane_id_for, row.preset, row.booking_id_for


def _values(row: UsageDay) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in (*NAMES, *TIMES, *COUNTS))


def _batches(items: list[Any]) -> Iterator[list[Any]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))
