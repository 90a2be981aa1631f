"""The times of a series: the same time on the wall, day after day. Pure.

Each occurrence keeps its start and its end on the clock of one zone, so that one over a change of
the clocks is longer or shorter than the others. A time that clocks leave out is the moment at which
they would have shown it without the change (02:30 is 03:30); of a time that they show twice, the
first. Both are told.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from enum import StrEnum

from bookings.wall_clock import DAY, Shown, read

MOST = 100  # occurrences of one series
FRIDAY = 4


class Every(StrEnum):
    """How often."""

    DAY = "daily"
    WEEKDAY = "weekdays"  # Monday to Friday
    WEEK = "weekly"  # on chosen days


class Note(StrEnum):
    """What the clocks do to an occurrence."""

    START_MOVED = "start_moved"  # left out by the clocks
    END_MOVED = "end_moved"
    START_FIRST = "start_first"  # shown twice
    END_FIRST = "end_first"


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
class Occurrence:
    """[start, end) in UTC, and what the clocks did to it. `wall_start` is naive: what was meant.

    Where the clocks leave nothing of it, its end is not after its start.
    """

    start: datetime
    end: datetime
    wall_start: datetime
    notes: tuple[Note, ...] = ()


def occurrences(
    start: datetime, end: datetime, pattern: Pattern, zone: tzinfo
) -> tuple[Occurrence, ...]:
    """Those from the naive times [start, end) of the first day on; one more than MOST where there
    are too many. A first day that is none of the pattern's is left out."""
    length = end - start
    return tuple(
        _occurrence(datetime.combine(day, start.time()), length, zone)
        for day in _days(start.date(), pattern)
    )


def shifted(moment: datetime, wall: datetime, zone: tzinfo, by: timedelta) -> datetime:
    """A moment whose naive time in the zone is `wall`, later by so much on the wall."""
    return read(wall + by, zone).choices[-1] if by else moment


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


def _occurrence(start: datetime, length: timedelta, zone: tzinfo) -> Occurrence:
    begins, begin_notes = _moment(start, zone, Note.START_MOVED, Note.START_FIRST)
    ends, end_notes = _moment(start + length, zone, Note.END_MOVED, Note.END_FIRST)
    return Occurrence(begins, ends, start, (*begin_notes, *end_notes))


def _moment(
    wall: datetime, zone: tzinfo, moved: Note, first: Note
) -> tuple[datetime, tuple[Note, ...]]:
    found = read(wall, zone)
    if found.shown is Shown.NEVER:
        return found.choices[-1], (moved,)
    return found.choices[0], (first,) if found.shown is Shown.TWICE else ()
