"""Booking a series: its occurrences are bookings of their own, made together or not at all."""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils.timezone import is_aware

from bookings.availability import HORIZON
from bookings.drafting import draft
from bookings.guards import Verdict, verdict
from bookings.models import Booking, Series
from bookings.policies import Standing, standing_of
from bookings.recurrence import MOST, Occurrence, Pattern, occurrences
from bookings.rules import (
    ENDS_BEFORE_START,
    TOO_FAR,
    Wish,
    kind_objection,
    lane_objection,
    owner_objection,
    preset_objection,
    purpose_objection,
)
from bookings.series_judging import Judged, judged
from bookings.series_offers import free_series, other_starts
from bookings.settling import BUSY, GONE, confirm_or_ask, lock, settle, tell_series
from lanes import clock
from lanes.models import Lane, Preset
from lanes.refusals import Refusal
from wire.words import said
from wire.zones import zone_named

NO_END = Refusal("no_end", said("Say until when it repeats, or how often."))
BAD_COUNT = Refusal("bad_count", said("A series has 1 to {most} bookings.", most=MOST))
TOO_MANY = Refusal(
    "too_many", said("That would be more than {most} bookings: let it end sooner.", most=MOST)
)
NO_DAY = Refusal("no_day", said("No day fits: let it begin earlier or end later."))
NO_ZONE = Refusal("unknown_zone", said("There is no such time zone."))
NOT_LOCAL = Refusal("not_local", said("Times of a series are those on the clock, without a zone."))
CLASH = said(
    "Some of it cannot be booked: nothing is booked. Leave those out, or change the times."
)
ALL_CLASH = said("None of it can be booked.")


@dataclass(frozen=True, slots=True)
class AskedSeries:
    """What is wished: naive times of the first day on the clock of a zone, and on which days."""

    lane: Lane
    kind: str
    preset: Preset | None
    start: datetime
    end: datetime
    zone: str
    pattern: Pattern
    purpose: str = ""
    meant: frozenset[datetime] = frozenset()  # moments, where clocks leave a choice


@dataclass(frozen=True, slots=True)
class SeriesRefused(Refusal):
    """Some occurrences cannot be booked (code series_clash): all, with what stands against each,
    and the nearest times of its first day at which all can."""

    judged: tuple[Judged, ...] = ()
    nearest: tuple[Occurrence, ...] = ()


@dataclass(frozen=True, slots=True)
class MadeSeries:
    """A series that was booked, its bookings, and what was left out."""

    series: Series
    bookings: tuple[Booking, ...]
    left_out: tuple[Judged, ...]


def preview(*, owner: User, asked: AskedSeries) -> tuple[Judged, ...] | Refusal:
    """Every occurrence with what stands against it; nothing is written.

    Refusals: no_end, bad_count, too_many, no_day, unknown_zone, not_local, ends_before_start,
    too_far, wrong_kind, unknown_preset, bad_purpose, lane_disabled.
    """
    found = _times(asked)
    if isinstance(found, Refusal):
        return found
    return _judged(owner, asked.lane, asked, found)


def book_series(
    *, owner: User, asked: AskedSeries, leaves_out: bool = False
) -> MadeSeries | Refusal:
    """Book all of it, or, where it `leaves_out` what clashes, all that can be booked.

    Refusals: those of `preview`; owner_inactive, series_clash (SeriesRefused), busy, wrong_state.
    """
    found = _times(asked)
    if isinstance(found, Refusal):
        return found
    made = settle(partial(_book, owner, asked, found, leaves_out))
    if isinstance(made, SeriesRefused):
        return replace(made, nearest=nearest_starts(owner, asked))
    return made


def nearest_starts(owner: User, asked: AskedSeries) -> tuple[Occurrence, ...]:
    """Up to three other times of day, the nearest first, at which all of a series can be booked: as
    the first occurrence would be. Nothing is locked, so others may be faster."""
    zone = zone_named(asked.zone)
    if zone is None or is_aware(asked.start) or is_aware(asked.end):
        return ()
    standing = standing_of(owner, asked.lane, clock.database_now())
    found = []
    for start in other_starts(asked.start):
        times = (start, start + (asked.end - asked.start))
        found.append(occurrences(*times, asked.pattern, zone))
    rows = [each for each in found if each and len(each) <= MOST]
    return free_series(standing, _wish(asked.lane, asked, rows[0][0]), rows) if rows else ()


def _book(
    owner: User, asked: AskedSeries, found: tuple[Occurrence, ...], leaves_out: bool
) -> MadeSeries | Refusal:
    """Lock, then check, then write."""
    lane = lock(owner.pk, {asked.lane.pk}).get(asked.lane.pk)
    if lane is None:
        return GONE
    answers = owner_objection(owner.pk) or _judged(owner, lane, asked, found)
    if isinstance(answers, Refusal):
        return answers
    fine = [each for each in answers if each.refusal is None]
    if not fine:
        return SeriesRefused("series_clash", ALL_CLASH, judged=answers)
    if len(fine) < len(answers) and not leaves_out:
        return SeriesRefused("series_clash", CLASH, judged=answers)
    return _written(owner, lane, asked, answers)


def _judged(
    owner: User, lane: Lane, asked: AskedSeries, found: tuple[Occurrence, ...]
) -> tuple[Judged, ...] | Refusal:
    wish = _wish(lane, asked, found[0])
    refusal = kind_objection(wish) or lane_objection(lane) or preset_objection(wish)
    return refusal or judged(standing_of(owner, lane, clock.database_now()), wish, found)


def _written(
    owner: User, lane: Lane, asked: AskedSeries, answers: tuple[Judged, ...]
) -> MadeSeries | Refusal:
    standing = standing_of(owner, lane, clock.database_now())
    pattern = asked.pattern
    series = Series(
        owner=owner,
        zone=asked.zone,
        every=pattern.every.value,
        days=sorted(pattern.days),
        until=pattern.until,
        count=pattern.count,
        created_at=standing.now,
    )
    fine = [each for each in answers if each.refusal is None]
    try:
        with transaction.atomic():  # the database is the last referee of overlaps
            series.save()
            bookings = Booking.objects.bulk_create(_drafts(standing, asked, series, fine))
    except IntegrityError as error:
        if verdict(error) is not Verdict.OVERLAP:
            raise
        return BUSY
    tell_series(bookings, owner, standing.now)
    return MadeSeries(series, tuple(bookings), tuple(a for a in answers if a.refusal))


def _drafts(
    standing: Standing, asked: AskedSeries, series: Series, fine: list[Judged]
) -> list[Booking]:
    """Each as it was judged: with those before it counted."""
    drafts = []
    for each in fine:
        booking = draft(standing, _wish(standing.lane, asked, each.occurrence), asked.purpose)
        booking.series = series
        confirm_or_ask(booking, standing.now, is_asked=each.is_asked)
        drafts.append(booking)
    return drafts


def _wish(lane: Lane, asked: AskedSeries, occurrence: Occurrence) -> Wish:
    return Wish(lane, asked.kind, asked.preset, occurrence.start, occurrence.end)


def _times(asked: AskedSeries) -> tuple[Occurrence, ...] | Refusal:
    """The occurrences, or what is wrong with the wish itself."""
    refusal = purpose_objection(asked.purpose) or _pattern_objection(asked.pattern)
    if refusal:
        return refusal
    if is_aware(asked.start) or is_aware(asked.end):
        return NOT_LOCAL
    if asked.end <= asked.start:
        return ENDS_BEFORE_START
    horizon = clock.database_now().replace(tzinfo=None) + HORIZON
    if asked.start > horizon or asked.end - asked.start > HORIZON:
        return TOO_FAR
    zone = zone_named(asked.zone)
    if zone is None:
        return NO_ZONE
    found = occurrences(asked.start, asked.end, asked.pattern, zone, asked.meant)
    if len(found) > MOST:
        return TOO_MANY
    return found or NO_DAY


def _pattern_objection(pattern: Pattern) -> Refusal | None:
    if pattern.until is None and pattern.count is None:
        return NO_END
    is_fine = pattern.count is None or 1 <= pattern.count <= MOST
    return None if is_fine else BAD_COUNT
