"""A span of the calendar as a list: a table per day, page by page."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby

from bookings.wall_clock import wall_of
from lanes.models import Lane
from slotserve.calendar import reading, words
from slotserve.calendar.entries import Entry
from slotserve.calendar.feed import of_slots
from slotserve.calendar.reading import Reader, Sought
from slotserve.calendar.spans import Span
from slotserve.calendar.telling import Teller
from slotserve.calendar.warming import lane_bands

ROWS = 50


@dataclass(frozen=True, slots=True)
class Line:
    """One booking of the list."""

    entry: Entry
    lane: str  # its name
    times: str
    warm: str  # when its model is, or empty


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of the list: lines by day; a next page, if there is one."""

    days: list[tuple[date, list[Line]]]
    page: int
    has_more: bool


def listing(span: Span, sought: Sought, reader: Reader, now: datetime, page: int) -> Listing:
    """The page of this number, from 1; twelve queries, two when nothing is booked."""
    lanes = reading.lanes_of(sought)
    first = (page - 1) * ROWS
    found = reading.held(lanes, span.start, span.end)[first : first + ROWS + 1]
    rows = reading.booked(found, now)
    names = {lane.pk: lane for lane in lanes}
    entries = [
        (names[row.lane_id], reading.entry_of(row, names[row.lane_id].slug, reader, now))
        for row in rows[:ROWS]
    ]
    lines = _lines(entries, span, now)
    grouped = groupby(lines, lambda line: _day(line.entry, span))
    return Listing([(day, list(group)) for day, group in grouped], page, len(rows) > ROWS)


def _lines(entries: list[tuple[Lane, Entry]], span: Span, now: datetime) -> list[Line]:
    if not entries:
        return []
    lanes = list({lane.pk: lane for lane, _ in entries}.values())
    start = min(entry.start for _, entry in entries)
    end = max(entry.start for _, entry in entries) + timedelta(seconds=1)
    within = start - reading.reach(), end + reading.reach()
    near = reading.booked(reading.held(lanes, within[0], end), now)
    closed = reading.closed(lanes, *within)
    ahead = of_slots(lane_bands(lanes, near, closed, within, now))
    teller = Teller(span.zone)
    return [
        Line(
            entry=entry,
            lane=lane.name,
            times=_times(entry, span),
            warm=teller.warm(ahead.get(entry.pk, ()), entry.start),
        )
        for lane, entry in entries
    ]


def _times(entry: Entry, span: Span) -> str:
    """The day only where it is not the table's."""
    is_earlier = wall_of(entry.start, span.zone).date() < span.first
    said = words.times if is_earlier else words.clocks
    return said(entry.start, entry.end, span.zone)


def _day(entry: Entry, span: Span) -> date:
    """The day it starts on; the first of the span for what began before."""
    return max(wall_of(entry.start, span.zone).date(), span.first)
