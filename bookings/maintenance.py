"""Maintenance of lanes: administrators plan, change and end it. Bookings in it stay as they are."""

import logging
from collections.abc import Collection
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from bookings.rules import NAIVE, in_utc, is_naive
from lanes import clock, ticks
from lanes.events import add_event
from lanes.locking import lock_lanes
from lanes.models import Lane, Maintenance
from lanes.refusals import NOT_ADMINISTRATOR, Refusal
from wire.words import At, Words, marked, said

log = logging.getLogger(__name__)
LONGEST_REASON = 200
NO_LANE = Refusal("no_lane", said("Name at least one lane."))
ENDS_BEFORE_START = Refusal("ends_before_start", said("A maintenance must end after it starts."))
IN_THE_PAST = Refusal("in_the_past", said("That end is in the past: end the maintenance instead."))
STARTS_IN_THE_PAST = Refusal(
    "in_the_past", said("That start is in the past: leave it out to begin now.")
)
BAD_REASON = Refusal(
    "bad_reason", said("Say why in at most {most} characters.", most=LONGEST_REASON)
)
OVER = Refusal("wrong_state", said("This maintenance is over."))
GONE = Refusal("not_found", said("A lane has been deleted meanwhile: look again."))
PLANNED = marked("maintenance planned from {start} until {end}")
CHANGED = marked("maintenance changed: from {start} until {end}")


def plan(
    lanes: Collection[Lane],
    *,
    start: datetime | None,
    end: datetime | None,
    reason: str = "",
    actor: User,
) -> tuple[Maintenance, ...] | Refusal:
    """Close these lanes from a time on (None: now) until another (None: until it is ended).

    One for each lane, all or none. Refusals: not_administrator, naive_time, no_lane, bad_reason,
    in_the_past, ends_before_start, not_found.
    """
    refusal = _objection(actor, reason, start, end)
    if refusal or not lanes:
        return refusal or NO_LANE
    with transaction.atomic():
        locked = lock_lanes({lane.pk for lane in lanes})
        if len(locked) < len({lane.pk for lane in lanes}):
            return GONE
        now = clock.database_now()
        begins, ends = in_utc(start) if start else now, in_utc(end) if end else None
        refusal = STARTS_IN_THE_PAST if begins < now else _end_objection(begins, ends, now)
        if refusal:
            return refusal
        made = [
            Maintenance(lane=lane, start=begins, end=ends, reason=reason.strip(), made_by=actor)
            for lane in locked
        ]
        for row in made:
            row.save()
            _tell(row, PLANNED, actor, now)
    return tuple(made)


def change(
    maintenance: Maintenance, *, end: datetime | None, reason: str | None = None, actor: User
) -> Maintenance | Refusal:
    """Give it another end (None: until it is ended), and another reason where one is given.

    Refusals: not_administrator, naive_time, bad_reason, in_the_past, ends_before_start,
    wrong_state when it is over.
    """
    refusal = _objection(actor, reason or "", end)
    if refusal:
        return refusal
    with transaction.atomic():
        row, now = _held(maintenance)
        if row is None or _is_over(row, now):
            return OVER
        row.end = in_utc(end) if end else None
        refusal = _end_objection(row.start, row.end, now)
        if refusal:
            return refusal
        row.reason = row.reason if reason is None else reason.strip()
        row.save(update_fields=["end", "reason"])
        _tell(row, CHANGED, actor, now)
    return row


def end(maintenance: Maintenance, *, actor: User) -> Refusal | None:
    """Open the lane again now, or call off what has not begun.

    Refusals: not_administrator, wrong_state when it is over.
    """
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    with transaction.atomic():
        row, now = _held(maintenance)
        if row is None or _is_over(row, now):
            return OVER
        row.ended_at = now
        row.save(update_fields=["ended_at"])
        words = said("maintenance ended") if row.start <= now else said("maintenance called off")
        add_event(row.lane, now, "maintenance", words, actor=actor)
        _soon()
    return None


def _objection(actor: User, reason: str, *moments: datetime | None) -> Refusal | None:
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    if is_naive(*moments):
        return NAIVE
    return BAD_REASON if len(reason.strip()) > LONGEST_REASON or "\0" in reason else None


def _end_objection(start: datetime, end: datetime | None, now: datetime) -> Refusal | None:
    if end is None:
        return None
    if end <= now:
        return IN_THE_PAST
    return ENDS_BEFORE_START if end <= start else None


def _held(maintenance: Maintenance) -> tuple[Maintenance | None, datetime]:
    """It as it is now, under its lane's lock, and the time then."""
    lock_lanes({maintenance.lane_id})
    row = Maintenance.objects.select_related("lane").filter(pk=maintenance.pk).first()
    return row, clock.database_now()


def _is_over(row: Maintenance, now: datetime) -> bool:
    return row.ended_at is not None or (row.end is not None and row.end <= now)


def _tell(row: Maintenance, template: str, actor: User, now: datetime) -> None:
    """Write the event, and have lanes planned and people told when this transaction commits."""
    zone = timezone.get_default_timezone()
    ends: At | Words = At(row.end, now, zone) if row.end else said("it is ended")
    words = said(template, start=At(row.start, now, zone), end=ends)
    if row.reason:
        words = said("{sentence} ({reason})", sentence=words, reason=row.reason)
    add_event(row.lane, now, "maintenance", words, actor=actor)
    _soon()
    log.info("maintenance lane=%s start=%s end=%s by=%s", row.lane.slug, row.start, row.end, actor)


def _soon() -> None:
    ticks.plan_soon()
    ticks.notices_soon()
