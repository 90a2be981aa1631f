"""Arithmetic of half-open intervals [start, end) in seconds since 1970. Pure."""

from collections.abc import Iterable, Sequence

Interval = tuple[float, float]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same time in the fewest intervals, in order; those without length are left out."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def within(intervals: Iterable[Interval], bounds: Interval) -> list[Interval]:
    """What of them lies in the bounds, as `union` answers it."""
    first, last = bounds
    return union((max(start, first), min(end, last)) for start, end in intervals)


def without(intervals: Iterable[Interval], taken: Iterable[Interval]) -> list[Interval]:
    """What of them none of the others covers, as `union` answers it."""
    holes = union(taken)
    return [left for one in union(intervals) for left in _cut(one, holes)]


def seconds(intervals: Iterable[Interval]) -> float:
    """How long they are together; those that overlap count once."""
    return sum(end - start for start, end in union(intervals))


def _cut(one: Interval, holes: Sequence[Interval]) -> list[Interval]:
    start, end = one
    left = []
    for hole_start, hole_end in holes:
        if hole_end <= start or hole_start >= end:
            continue
        if hole_start > start:
            left.append((start, hole_start))
        start = hole_end
    if start < end:
        left.append((start, end))
    return left
