"""The times of a series: the same time on the wall, day after day. Pure.

Each occurrence keeps its start and its end on the clock of one zone, so that one over a change of
the clocks is longer or shorter than the others. A time that clocks leave out is the moment at which
they would have shown it without the change (02:30 is 03:30); of a time that they show twice, the
first that can be (an end is after its start). Both are told, and the other moment can be meant.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from enum import StrEnum

from bookings.wall_clock import DAY, Reading, Shown, read

MOST = 100  # occurrences of one series
FRIDAY = 4


class Every(StrEnum):
    """How often."""

    DAY = "daily"
    WEEKDAY = "weekdays"  # Monday to Friday
    WEEK = "weekly"  # on chosen days


class Note(StrEnum):
    """What the clocks do to an occurrence."""

    START_MOVED = "start_moved"  # left out by the clocks: later
    END_MOVED = "end_moved"
    START_EARLIER = "start_earlier"  # left out, and the earlier one is meant
    END_EARLIER = "end_earlier"
    START_FIRST = "start_first"  # shown twice
    END_FIRST = "end_first"
    START_SECOND = "start_second"
    END_SECOND = "end_second"


@dataclass(frozen=True, slots=True)
class Pattern:
    """On which days. `days` (0 is Monday) are for weekly ones; none: the first day's.

    Until a day, which is the last that may be one, or so many times; at least one of both is said.
    """

    every: Every
    days: frozenset[int] = frozenset()
    until: date | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Doubt:
    """A start or an end that is not one moment: what clocks should show, the two moments that can
    be meant, and the one that is."""

    is_end: bool
    wall: datetime
    shown: Shown
    choices: tuple[datetime, ...]
    meant: datetime


@dataclass(frozen=True, slots=True)
class Occurrence:
    """[start, end) in UTC, and what the clocks did to it. `wall_start` is naive: what was meant.

    Where the clocks leave nothing of it, its end is not after its start.
    """

    start: datetime
    end: datetime
    wall_start: datetime
    notes: tuple[Note, ...] = ()
    doubts: tuple[Doubt, ...] = ()


def occurrences(
    start: datetime,
    end: datetime,
    pattern: Pattern,
    zone: tzinfo,
    meant: Collection[datetime] = frozenset(),
) -> tuple[Occurrence, ...]:
    """Those from the naive times [start, end) of the first day on; one more than MOST where there
    are too many. A first day that is none of the pattern's is left out. `meant`: moments that are
    to be taken where clocks leave a choice."""
    length = end - start
    return tuple(
        _occurrence(datetime.combine(day, start.time()), length, zone, meant)
        for day in _days(start.date(), pattern)
    )


def shifted(moment: datetime, wall: datetime, zone: tzinfo, by: timedelta) -> datetime:
    """A moment whose naive time in the zone is `wall`, later by so much on the wall; never earlier
    than the moment itself where it is later on the wall."""
    if not by:
        return moment
    after = moment if by > timedelta() else None
    return _usual(read(wall + by, zone), after)


def _days(first: date, pattern: Pattern) -> Iterator[date]:
    wanted = _weekdays(first, pattern)
    most = min(pattern.count or MOST + 1, MOST + 1)
    day, found = first, 0
    while found < most and (pattern.until is None or day <= pattern.until):
        if day.weekday() in wanted:
            found += 1
            yield day
        if day > date.max - 2 * DAY:
            return
        day += DAY


def _weekdays(first: date, pattern: Pattern) -> frozenset[int]:
    if pattern.every is Every.DAY:
        return frozenset(range(7))
    if pattern.every is Every.WEEKDAY:
        return frozenset(range(FRIDAY + 1))
    return pattern.days or frozenset({first.weekday()})


def _occurrence(
    start: datetime, length: timedelta, zone: tzinfo, meant: Collection[datetime]
) -> Occurrence:
    begins, begin_doubt = _moment(start, zone, meant, after=None)
    ends, end_doubt = _moment(start + length, zone, meant, after=begins)
    doubts = tuple(doubt for doubt in (begin_doubt, end_doubt) if doubt)
    return Occurrence(begins, ends, start, tuple(_note(each) for each in doubts), doubts)


def _moment(
    wall: datetime, zone: tzinfo, meant: Collection[datetime], after: datetime | None
) -> tuple[datetime, Doubt | None]:
    """The moment, and what is doubtful of it; `after`: the start of what this ends."""
    found = read(wall, zone)
    if found.shown is Shown.ONCE:
        return found.choices[0], None
    usual = _usual(found, after)
    said = (each for each in found.choices if each in meant and (after is None or each > after))
    chosen = next(said, usual)
    return chosen, Doubt(after is not None, wall, found.shown, found.choices, chosen)


def _usual(found: Reading, after: datetime | None) -> datetime:
    """What is meant unless somebody says otherwise."""
    if found.shown is Shown.NEVER:
        return found.choices[-1]
    later = (each for each in found.choices if after is None or each > after)
    return next(later, found.choices[0])


def _note(doubt: Doubt) -> Note:
    is_first = doubt.meant == doubt.choices[0]
    if doubt.shown is Shown.NEVER:
        earlier, later = (
            (Note.END_EARLIER, Note.END_MOVED)
            if doubt.is_end
            else (Note.START_EARLIER, Note.START_MOVED)
        )
        return earlier if is_first else later
    first, second = (
        (Note.END_FIRST, Note.END_SECOND) if doubt.is_end else (Note.START_FIRST, Note.START_SECOND)
    )
    return first if is_first else second
