"""Other times of day at which all of a series is free and breaks no rule; of bounded work."""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from bookings.availability import HORIZON
from bookings.closures import joined
from bookings.interval import Interval
from bookings.models import Booking
from bookings.policies import Standing
from bookings.policy import Claim
from bookings.recurrence import Occurrence
from bookings.rules import Wish, time_objection
from bookings.series_judging import judged

STEP = timedelta(minutes=15)
DAY = timedelta(days=1)
MOST_OFFERED = 3
MOST_JUDGED = 12  # of those that are free


def other_starts(start: datetime) -> Iterator[datetime]:
    """Other times of the same day, naive, the nearest first."""
    first = start.replace(hour=0, minute=0, second=0, microsecond=0)
    steps = [first + STEP * number for number in range(DAY // STEP)]
    offset = (start - first) % STEP
    moments = {each + offset for each in steps} | set(steps)
    others = (each for each in moments if each != start and each.date() == start.date())
    return iter(sorted(others, key=lambda each: (abs(each - start), each)))


def free_series(
    standing: Standing,
    wish: Wish,
    rows: Sequence[Sequence[Occurrence]],
    but: Collection[int] = (),
) -> tuple[Occurrence, ...]:
    """Of these series up to three that can be booked whole, by their first occurrences, of which
    none overlap; the bookings `but` are in nobody's way."""
    busy = _busy(standing, wish, rows, but)
    offered: list[Occurrence] = []
    tried = 0
    for row in rows:
        if len(offered) == MOST_OFFERED or tried == MOST_JUDGED:
            break
        is_worth_it = _is_apart(row[0], offered) and _is_fine(standing, wish, row[0])
        if not is_worth_it or not _is_free(row, busy):
            continue
        tried += 1
        if all(each.refusal is None for each in judged(standing, wish, row, but)):
            offered.append(row[0])
    return tuple(offered)


def _busy(
    standing: Standing,
    wish: Wish,
    rows: Sequence[Sequence[Occurrence]],
    but: Collection[int],
) -> tuple[Interval, ...]:
    """What is held or closed, disjoint and by start; one query."""
    first = min(row[0].start for row in rows)
    last = max(row[-1].end for row in rows)
    held = Booking.objects.others(but).in_the_way(wish.lane.pk, first, max(last, first))
    intervals = [Interval(*each) for each in held.values_list("start", "end")]
    return joined(intervals, standing.closures, standing.now + HORIZON)


def _is_fine(standing: Standing, wish: Wish, first: Occurrence) -> bool:
    """Whether the first of them may be booked, by itself."""
    preset = wish.preset.pk if wish.preset else None
    claim = Claim(wish.lane.pk, first.start, first.end, preset)
    each = replace(wish, start=first.start, end=first.end)
    return time_objection(each, standing.now) is None and not standing.judge.broken(claim)


def _is_free(row: Sequence[Occurrence], busy: Sequence[Interval]) -> bool:
    starts = [each.start for each in busy]
    for each in row:
        number = bisect_right(starts, each.start)
        if number and busy[number - 1].end > each.start:
            return False
        if number < len(busy) and busy[number].start < each.end:
            return False
    return True


def _is_apart(one: Occurrence, others: Sequence[Occurrence]) -> bool:
    return all(one.end <= each.start or each.end <= one.start for each in others)
