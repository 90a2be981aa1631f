"""How many bookings that would be too narrow to read become one. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bookings.wall_clock import DAY, day_start
from slotserve.calendar.entries import Block, Booked
from slotserve.calendar.spans import Span, View


@dataclass(frozen=True, slots=True)
class Density:
    """More than so many bookings of others in a lane's day become blocks, across such gaps."""

    most: int
    gap: timedelta


DENSITIES = {
    View.HOURS: Density(40, timedelta(minutes=1)),
    View.DAY: Density(16, timedelta(minutes=5)),
    View.WEEK: Density(6, timedelta(minutes=30)),
}


def condense(rows: Iterable[Booked], viewer: int, span: Span) -> Iterator[Booked | Block]:
    """The same, with what would be too narrow put together; the viewer's own stay. `rows` are by
    lane, then start."""
    density = DENSITIES[span.view]
    for day in _lane_days(rows, span):
        others = [row for row in day if row.owner_id != viewer]
        if len(others) <= density.most:
            yield from day
        else:
            yield from (row for row in day if row.owner_id == viewer)
            yield from _runs(others, density.gap)


def _lane_days(rows: Iterable[Booked], span: Span) -> Iterator[list[Booked]]:
    """The rows of each lane and day."""
    starts = [day_start(span.first + n * DAY, span.zone) for n in range(span.days + 1)]
    lane, ends, day = 0, starts[0], list[Booked]()
    for row in rows:
        if row.lane_id != lane or row.start >= ends:
            yield day
            lane, day = row.lane_id, []
            ends = starts[min(bisect_right(starts, row.start), span.days)]
        day.append(row)
    yield day


def _runs(rows: Sequence[Booked], gap: timedelta) -> Iterator[Booked | Block]:
    """Stretches in which each starts soon after the one before ends, as one."""
    first = 0
    for number in range(1, len(rows) + 1):
        if number == len(rows) or rows[number].start - rows[number - 1].end > gap:
            yield _together(rows[first:number])
            first = number


def _together(run: Sequence[Booked]) -> Booked | Block:
    if len(run) == 1:
        return run[0]
    booked = sum((row.end - row.start for row in run), timedelta())
    return Block(run[0], run[-1], len(run), booked.total_seconds())
