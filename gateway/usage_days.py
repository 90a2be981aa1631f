"""Usage by day, worked out from records, bookings and servers: docs/usage.md.

Each look notes which days have something new and works those out as a whole, so that it may be
skipped, repeated, or done again after anything was lost.
"""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import redis
from django.conf import settings
from django.db import transaction
from django.db.models import Min, Subquery

from bookings.models import Booking, State
from bookings.wall_clock import day_start
from gateway.models import UsageDay, UsageDueDay, UsageProgress, UsageRecord
from gateway.usage_day_rows import wanted_rows, write_rows
from lanes import ticks

log = logging.getLogger(__name__)

LOCK = "ss:usage:days"
LOCK_SECONDS = 55
RECORDS_AT_A_TIME = 20_000
BUDGET_SECONDS = 5.0  # of one call, so that no task is long; the rest is left to the next
LEAST_DAYS = 2
ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Bounds:
    """A day of the site's zone in UTC, 23 to 25 hours long."""

    first: datetime
    last: datetime


def bounds(day: date) -> Bounds:
    """From one midnight of SLOTSERVE_TIME_ZONE to the next."""
    zone = ZoneInfo(settings.TIME_ZONE)
    return Bounds(day_start(day, zone), day_start(day + ONE_DAY, zone))


def day_of(moment: datetime) -> date:
    """Its day in the site's zone."""
    return moment.astimezone(ZoneInfo(settings.TIME_ZONE)).date()


def roll_up(now: datetime, then: Callable[[datetime], object]) -> int:
    """Bring usage by day up to `now`, and do what may be done only `then`, before anybody else is
    at it; says how many days were worked out.

    Answers at once when another process is at it, or without Valkey: the next minute does it.
    """
    try:
        if not ticks.claim(LOCK, LOCK_SECONDS):
            return 0
    except redis.RedisError as error:
        log.warning("usage by day not worked out: Valkey does not answer reason=%s", error)
        return 0
    try:
        rolled = roll_due_days(now)
        then(now)
        return rolled
    finally:
        ticks.taken_up(LOCK)


def roll_due_days(now: datetime) -> int:
    """Note what is due and work it out, the newest day first, until the time is over; two days at
    least, because today is due each time. Days whose requests are forgotten stay as they are."""
    while note_due_days(now):
        pass
    UsageDueDay.objects.filter(
        day__lt=Subquery(UsageProgress.objects.values("kept_from")[:1])
    ).delete()
    deadline, rolled = time.monotonic() + BUDGET_SECONDS, 0
    for due in list(UsageDueDay.objects.all()):
        roll_day(due.day, now)
        due.delete()
        rolled += 1
        if rolled >= LEAST_DAYS and time.monotonic() >= deadline:
            break
    return rolled


def roll_day(day: date, now: datetime) -> None:
    """Work out one day as a whole; what comes after `now` is not counted yet."""
    found = bounds(day)
    held = UsageDay.objects.filter(day=day)
    write_rows(list(held), wanted_rows(day, found.first, found.last, now))


def note_due_days(now: datetime) -> bool:
    """Mark the days that something new belongs to; whether there are more records to look at."""
    today, progress = day_of(now), UsageProgress.objects.first()
    if progress is None or progress.zone != settings.TIME_ZONE:
        _note_everything(now, progress)
        return False
    new = UsageRecord.objects.filter(pk__gt=progress.last_record).order_by("pk")
    rows = list(new.values_list("pk", "at", "duration_ms")[:RECORDS_AT_A_TIME])
    days = set(_days(min(progress.through, today), today))
    for _, at, duration_ms in rows:
        days.update(_days(day_of(at), day_of(at + timedelta(milliseconds=duration_ms))))
    last = rows[-1][0] if rows else progress.last_record
    with transaction.atomic():
        _mark(days)
        UsageProgress.objects.filter(pk=progress.pk).update(through=today, last_record=last)
    return len(rows) == RECORDS_AT_A_TIME


def _note_everything(now: datetime, progress: UsageProgress | None) -> None:
    """All days since the first record or booking: at a first look, and in another zone."""
    today, newest = day_of(now), UsageRecord.objects.order_by("-pk").first()
    claims = Booking.objects.filter(state=State.CONFIRMED).aggregate(first=Min("start"))["first"]
    called = UsageRecord.objects.aggregate(first=Min("at"))["first"]
    begun = min([each for each in (claims, called) if each is not None], default=now)
    held = UsageDay.objects.order_by().values_list("day", flat=True).distinct()
    with transaction.atomic():
        _mark({*_days(day_of(begun), today), *held})
        progress = progress or UsageProgress()
        progress.zone, progress.through = settings.TIME_ZONE, today
        progress.last_record = newest.pk if newest else 0
        progress.save()


def _days(first: date, last: date) -> Iterable[date]:
    return (first + number * ONE_DAY for number in range((last - first).days + 1))


def _mark(days: Iterable[date]) -> None:
    marks = [UsageDueDay(day=day) for day in days]
    UsageDueDay.objects.bulk_create(marks, ignore_conflicts=True, batch_size=100)
