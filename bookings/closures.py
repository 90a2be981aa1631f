"""What maintenance leaves of bookings. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from bookings.interval import Interval
from bookings.situation import Claim, Closure, Margins


def in_force(closures: Iterable[Closure], now: datetime) -> Closure | None:
    """The one that lasts longest of those in which `now` lies."""
    found = [each for each in closures if each.start <= now and not _is_over(each, now)]
    return max(found, key=_last, default=None)


def coming(closures: Iterable[Closure], now: datetime) -> Closure | None:
    """The next one to begin."""
    later = (each for each in closures if each.start > now)
    return min(later, key=lambda each: each.start, default=None)


def empty_from(closure: Closure, margins: Margins) -> datetime:
    """From when a lane without a slot in progress is emptied for it."""
    return closure.start - timedelta(seconds=margins.stop + margins.buffer)


def pieces(claims: Iterable[Claim], closures: Iterable[Closure]) -> Iterator[Claim]:
    """The claims without the time in which their lane is closed: shorter, in two, or none."""
    found = list(claims)
    for closure in closures:
        found = [piece for claim in found for piece in _without(claim, closure)]
    yield from found


def is_closed(closure: Closure, start: datetime, end: datetime) -> bool:
    """Whether some of [start, end) lies in it."""
    return closure.start < end and not _is_over(closure, start)


def joined(
    busy: Iterable[Interval], closures: Iterable[Closure], horizon: datetime
) -> tuple[Interval, ...]:
    """What is held or closed, disjoint and by start; what has no end ends at the horizon."""
    closed = [Interval(c.start, c.end or max(horizon, c.start)) for c in closures]
    found: list[Interval] = []
    for each in sorted([*busy, *closed], key=lambda one: one.start):
        if found and each.start < found[-1].end:
            found[-1] = Interval(found[-1].start, max(found[-1].end, each.end))
        else:
            found.append(each)
    return tuple(found)


def _without(claim: Claim, closure: Closure) -> Iterator[Claim]:
    if closure.start >= claim.end or _is_over(closure, claim.active_from):
        yield claim
        return
    if claim.active_from < closure.start:
        yield replace(claim, end=closure.start)
    if closure.end is not None and closure.end < claim.end:
        yield replace(claim, start=closure.end)


def _is_over(closure: Closure, now: datetime) -> bool:
    return closure.end is not None and closure.end <= now


def _last(closure: Closure) -> tuple[bool, float]:
    return closure.end is None, closure.end.timestamp() if closure.end else 0.0
