"""How many bookings that would be too narrow to read become one. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby

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
    days = [day_start(span.first + n * DAY, span.zone) for n in range(span.days)]

    def lane_day(row: Booked) -> tuple[int, int]:
        return row.lane_id, bisect_right(days, row.start)

    for _, group in groupby(rows, lane_day):
        day = list(group)
        others = [row for row in day if row.owner_id != viewer]
        if len(others) <= density.most:
            yield from day
        else:
            yield from (row for row in day if row.owner_id == viewer)
            yield from map(_together, _runs(others, density.gap))


def _runs(rows: Iterable[Booked], gap: timedelta) -> Iterator[list[Booked]]:
    """Stretches in which each starts soon after the one before ends."""
    run: list[Booked] = []
    for row in rows:
        if run and row.start - run[-1].end > gap:
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _together(run: list[Booked]) -> Booked | Block:
    if len(run) == 1:
        return run[0]
    seconds = sum((row.end - row.start).total_seconds() for row in run)
    return Block(run[0], run[-1], len(run), seconds)
