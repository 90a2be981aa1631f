"""A month of lanes: for each day how much is booked, and a strip of when. Pure.

Thousands of bookings become a cell for each lane and day, and a path for each lane and kind.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from bookings.states import Kind, State
from slotserve.calendar.entries import Booked

UNITS = 96  # of a day: quarters of an hour, but on days on which clocks are changed


class Look(NamedTuple):
    """What tells bookings of a strip apart."""

    is_mine: bool
    is_pending: bool
    is_gpu: bool


@dataclass(slots=True)
class Cell:
    """A lane's day: bookings that hold some of it, and for how long."""

    count: int = 0
    seconds: float = 0.0
    mine: int = 0
    pending: int = 0
    gpu: int = 0

    @property
    def facts(self) -> tuple[int, float, int, int, int]:
        """Count, hours to a tenth, and how many are the reader's, wait, are of the whole GPU."""
        return self.count, round(self.seconds / 3600, 1), self.mine, self.pending, self.gpu

    def add(self, look: Look, seconds: float) -> None:
        """One more booking."""
        self.count += 1
        self.seconds += seconds
        self.mine += look.is_mine
        self.pending += look.is_pending
        self.gpu += look.is_gpu


@dataclass(slots=True)
class Row:
    """A lane's days, and its stretches by look, in units from the first day on."""

    cells: list[Cell]
    stretches: dict[Look, list[tuple[int, int]]] = field(default_factory=dict)

    def draw(self, look: Look, start: int, end: int) -> None:
        """One more stretch, not before those that are there; it joins what it touches."""
        found = self.stretches.setdefault(look, [])
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, max(end, start + 1)))


def month(rows: Iterable[Booked], viewer: int, days: Sequence[datetime]) -> dict[int, Row]:
    """The rows of lanes that have bookings; `days` are the midnights, and that after the last.
    `rows` are by start."""
    found: defaultdict[int, Row] = defaultdict(lambda: Row([Cell() for _ in days[1:]]))
    for row in rows:
        look = Look(row.owner_id == viewer, row.state == State.PENDING, row.kind == Kind.GPU)
        lane = found[row.lane_id]
        first = day = max(bisect_right(days, row.start) - 1, 0)
        while day < len(days) - 1 and days[day] < row.end:
            held = min(row.end, days[day + 1]) - max(row.start, days[day])
            lane.cells[day].add(look, held.total_seconds())
            day += 1
        if day > first:
            start, end = max(row.start, days[first]), min(row.end, days[day])
            lane.draw(look, _unit(first, start, days), _unit(day - 1, end, days))
    return dict(found)


def _unit(day: int, moment: datetime, days: Sequence[datetime]) -> int:
    share: float = (moment - days[day]) / (days[day + 1] - days[day])
    return round((day + share) * UNITS)
