"""Entries of the calendar, and how many that would be too narrow to read become one. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from itertools import groupby

from slotserve.calendar.spans import View


@dataclass(frozen=True, slots=True)
class Entry:
    """A booking as its reader may see it."""

    pk: int
    lane: str  # slug
    start: datetime
    end: datetime
    who: str
    what: str  # the preset's name; empty: the whole GPU
    is_mine: bool
    is_pending: bool
    is_editable: bool  # by the reader, now
    is_begun: bool  # its start stays


@dataclass(frozen=True, slots=True)
class Block:
    """Several bookings of others, close to each other, as one."""

    lane: str
    start: datetime
    end: datetime
    count: int
    seconds: float  # booked


@dataclass(frozen=True, slots=True)
class Density:
    """More than so many bookings of others in a lane's day become blocks, across such gaps."""

    most: int
    gap: timedelta


DENSITIES = {
    View.HOURS: Density(40, timedelta(minutes=1)),
    View.DAY: Density(16, timedelta(minutes=5)),
    View.WEEK: Density(6, timedelta(minutes=30)),
    View.MONTH: Density(1, timedelta(days=1)),
}


def condense(entries: Iterable[Entry], view: View, zone: tzinfo) -> Iterator[Entry | Block]:
    """The same, with what would be too narrow put together; the reader's own stay. `entries` are
    by lane, then start."""
    density = DENSITIES[view]

    def lane_day(entry: Entry) -> tuple[str, date]:
        return entry.lane, entry.start.astimezone(zone).date()

    for _, group in groupby(entries, lane_day):
        day = list(group)
        others = [entry for entry in day if not entry.is_mine]
        if len(others) <= density.most:
            yield from day
        else:
            yield from (entry for entry in day if entry.is_mine)
            yield from map(_together, _runs(others, density.gap))


def _runs(entries: Iterable[Entry], gap: timedelta) -> Iterator[list[Entry]]:
    """Stretches in which each starts soon after the one before ends."""
    run: list[Entry] = []
    for entry in entries:
        if run and entry.start - run[-1].end > gap:
            yield run
            run = []
        run.append(entry)
    if run:
        yield run


def _together(run: list[Entry]) -> Entry | Block:
    if len(run) == 1:
        return run[0]
    seconds = sum((entry.end - entry.start).total_seconds() for entry in run)
    return Block(run[0].lane, run[0].start, run[-1].end, len(run), seconds)
