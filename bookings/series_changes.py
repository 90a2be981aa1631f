"""Cancelling and moving several bookings of a series at once: all of those meant, or none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from zoneinfo import ZoneInfo

from django.contrib.auth.models import User
from django.db import transaction

from bookings.availability import advice
from bookings.changes import CHANGED, Asked, moved
from bookings.endings import give_back, give_up
from bookings.models import Booking, State, Status
from bookings.policies import standing_of
from bookings.querysets import BookingQuerySet
from bookings.recurrence import Occurrence, shifted
from bookings.refusals import Interval, Offering
from bookings.rules import NAIVE, Wish, is_naive
from bookings.series_offers import free_series, other_starts
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
from lanes.models import Lane
from lanes.refusals import Refusal
from lanes.telling import moment
from wire.words import said

NO_SERIES = Refusal("wrong_state", said("This booking belongs to no series."))
Work = Callable[[Held], Answer]
NOT_BEGUN = frozenset({Status.UPCOMING, Status.PENDING})
NOT_OVER = NOT_BEGUN | {Status.IN_PROGRESS}


class Span(StrEnum):
    """Which bookings of a series are meant, of those that are not over."""

    THIS = "this"
    FOLLOWING = "following"  # this one and those after it
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be done with which bookings of a series. `seen`: this one is still to be as it was
    when that was decided. `to_lane` is locked as well."""

    span: Span
    work: Work
    statuses: frozenset[Status] = NOT_BEGUN
    seen: tuple[datetime, datetime] | None = None
    to_lane: Lane | None = None
    is_last_first: bool = False


@dataclass(frozen=True, slots=True)
class Shift:
    """A change of times on the clock of a zone: all by as much, and to a length, or (None) each to
    its own."""

    zone: ZoneInfo
    by: timedelta
    length: timedelta | None
    lane: Lane | None = None
    is_sure: bool = True


def cancel_series(
    booking: Booking, *, actor: User, span: Span = Span.ALL
) -> tuple[Booking, ...] | Refusal:
    """Cancel those of its series that have not begun. Each counts as late that is.

    Refusals: wrong_state (of no series), not_yours, too_late (none is left), busy.
    """
    work = partial(give_up, state=State.CANCELLED)
    return _change(booking, actor, Change(span, work))


def release_series(
    booking: Booking, *, actor: User, span: Span = Span.ALL
) -> tuple[Booking, ...] | Refusal:
    """The same, and one of them that is in progress is released.

    Refusals: those of `cancel_series`.
    """
    return _change(booking, actor, Change(span, give_back, NOT_OVER))


def move_series(  # noqa: PLR0913 - what is wished, all by name
    booking: Booking,
    *,
    actor: User,
    start: datetime,
    end: datetime,
    lane: Lane | None = None,
    span: Span = Span.ALL,
    is_sure: bool = True,
) -> tuple[Booking, ...] | Refusal:
    """Move this booking to [start, end), and the others of its series by as much on the clock of
    the series. Where its length changes, all get that length; one in progress gets another end.

    Refusals: those of `services.move` with the first that one of them meets, and which it is; those
    of `cancel_series`; changed, when this one is not any more what it was.
    """
    if is_naive(start, end):
        return NAIVE
    if booking.series is None:
        return NO_SERIES
    zone = ZoneInfo(booking.series.zone)
    by = wall_of(start, zone) - wall_of(booking.start, zone)
    length = wall_of(end, zone) - wall_of(start, zone)
    is_length_kept = length == _length(booking, zone) or end - start == booking.end - booking.start
    shift = Shift(zone, by, None if is_length_kept else length, lane, is_sure)
    is_in_place = not by and (lane is None or lane.pk == booking.lane_id)
    change = Change(
        span,
        partial(_shift, shift),
        statuses=NOT_OVER if is_in_place else NOT_BEGUN,
        seen=(booking.start, booking.end),
        to_lane=lane,
        is_last_first=by > timedelta(),
    )
    answer = _change(booking, actor, change)
    if isinstance(answer, Offering) and not answer.nearest:
        return _with_other_times(answer, booking, shift, span, wall_of(start, zone))
    return answer


def _with_other_times(
    refusal: Offering, booking: Booking, shift: Shift, span: Span, wall: datetime
) -> Offering:
    """A refusal with the nearest times of that day at which all that are meant could be: as this
    one would be, so none where they differ. Nothing is locked, so others may be faster."""
    now, lane = clock.database_now(), shift.lane or booking.lane
    meant = [each for each in _meant(booking, span) if each.status(now) in NOT_BEGUN]
    if booking not in meant or _is_mixed(meant, shift):
        return refusal
    but, before = [each.pk for each in meant], wall_of(booking.start, shift.zone)
    is_changed = lane.pk != booking.lane_id or shift.length is not None
    rows = [
        [_occurrence(replace(shift, by=start - before), each) for each in meant]
        for start in other_starts(wall)
        if is_changed or start != before
    ]
    standing = standing_of(booking.owner, lane, now, but=but)
    wish = Wish(lane, booking.kind, booking.preset, booking.start, booking.end)
    this = {row[0]: row[meant.index(booking)] for row in rows}
    found = [this[first] for first in free_series(standing, wish, rows, but)]
    nearest = tuple(Interval(each.start, each.end) for each in found)
    words = f"{refusal.words} {advice(nearest, now)}" if nearest else refusal.words
    return replace(refusal, sentence=words, nearest=nearest)


def _is_mixed(meant: Sequence[Booking], shift: Shift) -> bool:
    """Whether one of them would be on another lane, or load something else, than the others."""
    return len({(shift.lane or each.lane, each.kind, each.preset_id) for each in meant}) > 1


def _change(booking: Booking, actor: User, change: Change) -> tuple[Booking, ...] | Refusal:
    if booking.series_id is None:
        return NO_SERIES
    return settle(partial(_under_lock, booking, actor, change))


def _under_lock(booking: Booking, actor: User, change: Change) -> tuple[Booking, ...] | Refusal:
    """Lock, then do it to each; one refusal undoes all."""
    lanes = set(_meant(booking, change.span).values_list("lane", flat=True))
    also = {change.to_lane.pk} if change.to_lane else set()
    locked = lock(booking.owner_id, lanes | also)
    now = clock.database_now()
    rows = _meant(booking, change.span).select_for_update(no_key=True, of=("self",))
    found = [each for each in rows if each.status(now) in change.statuses]
    refusal = _objection(booking, actor, change, found)
    if refusal:
        return refusal
    if {each.lane_id for each in found} - lanes or also - set(locked):
        return BUSY
    answers = []
    for each in reversed(found) if change.is_last_first else found:
        answer = change.work(held_as(each, actor, locked, now))
        if isinstance(answer, Refusal):
            transaction.set_rollback(True)
            return _of_one(each, answer) if len(found) > 1 else answer
        answers.append(answer)
    return tuple(sorted(answers, key=lambda each: each.start))


def _objection(
    booking: Booking, actor: User, change: Change, found: Sequence[Booking]
) -> Refusal | None:
    if not found:
        return TOO_LATE
    if not all(each.is_changeable_by(actor) for each in found):
        return NOT_YOURS
    this = Booking.objects.filter(pk=booking.pk).values_list("start", "end").first()
    return CHANGED if change.seen is not None and this != change.seen else None


def _of_one(booking: Booking, refusal: Refusal) -> Refusal:
    """A refusal with which of several it is about; what is free for that one is no help for all."""
    why = (refusal.why if isinstance(refusal, Offering) else "") or refusal.words
    sentence = said("The one of {moment}: {why}", moment=moment(booking.start), why=why)
    if isinstance(refusal, Offering):
        return replace(refusal, sentence=sentence, nearest=())
    return replace(refusal, sentence=sentence)


def _meant(booking: Booking, span: Span) -> BookingQuerySet:
    of_series = Booking.objects.filter(
        series=booking.series_id, owner=booking.owner_id, state__in=OCCUPYING
    )
    if span is Span.THIS:
        of_series = of_series.filter(pk=booking.pk)
    elif span is Span.FOLLOWING:
        of_series = of_series.filter(start__gte=booking.start)
    return of_series.select_related("lane", "owner", "preset").order_by("start", "pk")


def _shift(shift: Shift, held: Held) -> Answer:
    to = _occurrence(shift, held.booking)
    return moved(Asked(to.start, to.end, shift.lane, is_sure=shift.is_sure), held)


def _occurrence(shift: Shift, booking: Booking) -> Occurrence:
    """Where a booking is to be."""
    zone = shift.zone
    start = shifted(booking.start, wall_of(booking.start, zone), zone, shift.by)
    if shift.length is None and not shift.by:
        end = booking.end
    else:
        length = _length(booking, zone) if shift.length is None else shift.length
        end = shifted(start, wall_of(start, zone), zone, length)
    return Occurrence(start, end, wall_of(start, zone))


def _length(booking: Booking, zone: ZoneInfo) -> timedelta:
    """On the clock."""
    return wall_of(booking.end, zone) - wall_of(booking.start, zone)
