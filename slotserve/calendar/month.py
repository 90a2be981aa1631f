"""A month of lanes: for each day how much is booked, and a strip of when. Pure.

Thousands of bookings become a cell for each lane and day, and a path for each lane and kind.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

UNITS = (
    48  # of a day: half hours, but on days on which clocks are changed; a column has no more pixels
)
Kept = str | datetime  # a moment as the database gives it
Held = tuple[int, Kept, Kept, int]  # of a booking: lane, start, end, its look's place in LOOKS


class Look(NamedTuple):
    """What tells bookings of a strip apart, beside whose they are."""

    is_pending: bool
    is_gpu: bool
    is_held: bool = False


_BOTH = (False, True)
LOOKS = [Look(pending, gpu, held) for held in _BOTH for gpu in _BOTH for pending in _BOTH]


class Facts(NamedTuple):
    """What is said of a lane's day: bookings and hours, and how many of those are the reader's,
    wait for approval, are of the whole GPU, are held for who waited."""

    bookings: int
    hours: float
    mine: int
    pending: int
    gpu: int
    held: int = 0


@dataclass(slots=True)
class Cell:
    """A lane's day: bookings that hold some of it, and for how long."""

    count: int = 0
    seconds: float = 0.0
    mine: int = 0
    pending: int = 0
    gpu: int = 0
    held: int = 0

    @property
    def facts(self) -> Facts:
        """The same, hours to a tenth."""
        hours = round(self.seconds / 3600, 1)
        return Facts(self.count, hours, self.mine, self.pending, self.gpu, self.held)

    def add(self, look: Look, count: int, seconds: float) -> None:
        """So many more bookings."""
        self.count += count
        self.seconds += seconds
        self.pending += count * look.is_pending
        self.gpu += count * look.is_gpu
        self.held += count * look.is_held


@dataclass(slots=True)
class Row:
    """A lane's days, and its stretches by whether they are the reader's and look, in units from the
    first day on."""

    cells: list[Cell]
    stretches: dict[tuple[bool, Look], list[tuple[int, int]]] = field(default_factory=dict)


class _Places(dict[Kept, tuple[int, float, int]]):
    """Of moments the day, the seconds since the month began, and the unit of the day; what is
    before or after the month is at its edge. The same moments recur."""

    def __init__(self, days: Sequence[datetime], read: Callable[[Kept], datetime]) -> None:
        super().__init__()
        self._read, self._first = read, days[0].timestamp()
        self.begins = [day.timestamp() - self._first for day in days]

    def __missing__(self, kept: Kept) -> tuple[int, float, int]:
        begins = self.begins
        since = self._read(kept).timestamp() - self._first
        since = min(max(since, 0.0), begins[-1])
        day = bisect_right(begins, since, hi=len(begins) - 1) - 1
        share = (since - begins[day]) / (begins[day + 1] - begins[day])
        self[kept] = found = day, since, round(share * UNITS)
        return found


@dataclass(slots=True)
class Tally:
    """Of a lane for each day and look: how many, seconds, and a strip with a bit for each unit."""

    counts: list[int]
    seconds: list[float]
    strips: list[int]


def tallies(
    rows: Iterable[Held], days: Sequence[datetime], read: Callable[[Kept], datetime]
) -> dict[int, Tally]:
    """Of lanes that have bookings; `days` are the midnights, and that after the last.

    Of thousands of bookings little is done for each, and the most of it only for those that end on
    another day than they start.
    """
    size = (len(days) - 1) * len(LOOKS)
    found: defaultdict[int, Tally] = defaultdict(
        lambda: Tally([0] * size, [0.0] * size, [0] * size)
    )
    places = _Places(days, read)
    begins = places.begins
    for lane, start, end, look in rows:
        day, since, unit = places[start]
        last, until, end_unit = places[end]
        tally = found[lane]
        while since < until:
            at = day * len(LOOKS) + look
            tally.counts[at] += 1
            if day == last:
                tally.seconds[at] += until - since
                tally.strips[at] |= ((1 << (end_unit - unit or 1)) - 1) << unit
                break
            tally.seconds[at] += begins[day + 1] - since
            tally.strips[at] |= ((1 << (UNITS - unit)) - 1) << unit
            day, unit = day + 1, 0
            since = begins[day]
    return {lane: tally for lane, tally in found.items() if any(tally.counts)}


def month_row(tally: Tally, own: Tally | None) -> Row:
    """A lane's row for a reader: `tally` is of all bookings, `own` of the reader's, which hide what
    of others would be in the same place of a strip."""
    cells = [Cell() for _ in range(len(tally.counts) // len(LOOKS))]
    for at, count in enumerate(tally.counts):
        if count:
            day, look = divmod(at, len(LOOKS))
            cells[day].add(LOOKS[look], count, tally.seconds[at])
            cells[day].mine += own.counts[at] if own else 0
    mine = _strips(own) if own else [0] * len(LOOKS)
    others = [strip & ~hiding for strip, hiding in zip(_strips(tally), mine, strict=True)]
    drawn = ((False, others), (True, mine))
    return Row(
        cells,
        {
            (is_mine, look): _stretches(strip)
            for is_mine, strips in drawn
            for look, strip in zip(LOOKS, strips, strict=True)
            if strip
        },
    )


def _strips(tally: Tally) -> list[int]:
    """Of each look one from the first day on."""
    strips = [0] * len(LOOKS)
    for at, strip in enumerate(tally.strips):
        if strip:
            day, look = divmod(at, len(LOOKS))
            strips[look] |= strip << (day * UNITS)
    return strips


def _stretches(strip: int) -> list[tuple[int, int]]:
    """Where bits are set one after the other, from the lowest on."""
    return [found.span() for found in re.finditer("1+", f"{strip:b}"[::-1])]
