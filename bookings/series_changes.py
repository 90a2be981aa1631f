"""Cancelling and moving several bookings of a series at once: all of those meant, or none."""

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from zoneinfo import ZoneInfo

from django.contrib.auth.models import User
from django.db import transaction

from bookings.changes import Asked, moved
from bookings.endings import give_up
from bookings.models import Booking, State, Status
from bookings.querysets import BookingQuerySet
from bookings.recurrence import shifted
from bookings.rules import NAIVE, is_naive
from bookings.settling import (
    BUSY,
    NOT_YOURS,
    TOO_LATE,
    Answer,
    Held,
    held_as,
    lock,
    settle,
)
from bookings.states import OCCUPYING
from bookings.wall_clock import wall_of
from lanes import clock
from lanes.refusals import Refusal
from wire.words import said

NO_SERIES = Refusal("wrong_state", said("This booking belongs to no series."))
Work = Callable[[Held], Answer]


class Span(StrEnum):
    """Which bookings of a series are meant; only those that have not begun."""

    THIS = "this"
    FOLLOWING = "following"  # this one and those after it
    ALL = "all"


def cancel_series(
    booking: Booking, *, actor: User, span: Span = Span.ALL
) -> tuple[Booking, ...] | Refusal:
    """Cancel those of its series that have not begun. Each counts as late that is.

    Refusals: wrong_state (of no series), not_yours, too_late (none is left), busy.
    """
    return _change(booking, actor, span, lambda held: give_up(held, State.CANCELLED))


def move_series(
    booking: Booking, *, actor: User, start: datetime, end: datetime, span: Span = Span.ALL
) -> tuple[Booking, ...] | Refusal:
    """Move this booking to [start, end), and the others of its series by as much on the clock of
    the series; all get its length.

    Refusals: those of `services.move` with the first that one of them meets, and of
    `cancel_series`.
    """
    if is_naive(start, end):
        return NAIVE
    if booking.series is None:
        return NO_SERIES
    zone = ZoneInfo(booking.series.zone)
    by = wall_of(start, zone) - wall_of(booking.start, zone)
    length = wall_of(end, zone) - wall_of(start, zone)
    work = partial(_shift, zone, by, length)
    return _change(booking, actor, span, work, is_last_first=by > timedelta())


def _change(
    booking: Booking, actor: User, span: Span, work: Work, *, is_last_first: bool = False
) -> tuple[Booking, ...] | Refusal:
    if booking.series_id is None:
        return NO_SERIES
    return settle(partial(_under_lock, booking, actor, span, work, is_last_first))


def _under_lock(
    booking: Booking, actor: User, span: Span, work: Work, is_last_first: bool
) -> tuple[Booking, ...] | Refusal:
    """Lock, then do it to each; one refusal undoes all."""
    lanes = set(_meant(booking, span).values_list("lane", flat=True))
    locked = lock(booking.owner_id, lanes)
    now = clock.database_now()
    rows = _meant(booking, span).select_for_update(no_key=True, of=("self",))
    found = [each for each in rows if each.status(now) in {Status.UPCOMING, Status.PENDING}]
    if {each.lane_id for each in found} - lanes:
        return BUSY
    if not found:
        return TOO_LATE
    if not all(each.is_changeable_by(actor) for each in found):
        return NOT_YOURS
    answers = []
    for each in reversed(found) if is_last_first else found:
        answer = work(held_as(each, actor, locked, now))
        if isinstance(answer, Refusal):
            transaction.set_rollback(True)
            return answer
        answers.append(answer)
    return tuple(sorted(answers, key=lambda each: each.start))


def _meant(booking: Booking, span: Span) -> BookingQuerySet:
    of_series = Booking.objects.filter(
        series=booking.series_id, owner=booking.owner_id, state__in=OCCUPYING
    )
    if span is Span.THIS:
        of_series = of_series.filter(pk=booking.pk)
    elif span is Span.FOLLOWING:
        of_series = of_series.filter(start__gte=booking.start)
    return of_series.select_related("lane", "owner", "preset").order_by("start", "pk")


def _shift(zone: ZoneInfo, by: timedelta, length: timedelta, held: Held) -> Answer:
    booking = held.booking
    wall = wall_of(booking.start, zone)
    start = shifted(booking.start, wall, zone, by)
    end = shifted(start, wall_of(start, zone), zone, length)
    return moved(Asked(start, end), held)
