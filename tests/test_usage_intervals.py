"""Intervals and the shares of a booking's time: what holds for any of them, and a table."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.intervals import Interval, seconds, union, within, without
from gateway.shares import Shares, shares_of

POINTS = st.integers(0, 40).map(float)
SOME = st.lists(st.tuples(POINTS, POINTS), max_size=8)
HELD = st.tuples(POINTS, POINTS).map(lambda pair: (min(pair), max(pair)))


def ticks(intervals: list[Interval]) -> set[int]:
    """The whole seconds that they cover: another way to say the same."""
    return {tick for start, end in intervals for tick in range(int(start), int(end))}


@given(SOME)
def test_a_union_covers_the_same_and_nothing_touches(some: list[Interval]) -> None:
    merged = union(some)
    assert ticks(merged) == ticks(some)
    assert all(start < end for start, end in merged)
    assert all(one[1] < other[0] for one, other in pairwise(merged))
    assert seconds(some) == len(ticks(some))


@given(SOME, HELD)
def test_within_is_what_lies_in_the_bounds(some: list[Interval], bounds: Interval) -> None:
    assert ticks(within(some, bounds)) == ticks(some) & ticks([bounds])


@given(SOME, SOME)
def test_without_is_what_the_others_leave(some: list[Interval], taken: list[Interval]) -> None:
    assert ticks(without(some, taken)) == ticks(some) - ticks(taken)


@given(HELD, SOME, SOME)
def test_shares_add_up_to_what_was_booked(
    held: Interval, busy: list[Interval], ready: list[Interval]
) -> None:
    shares = shares_of(held, busy=busy, ready=ready, is_measured=True)
    assert shares.booked == held[1] - held[0]
    assert shares.used == len(ticks(busy) & ticks([held]))
    assert shares.loading == len(ticks([held]) - ticks(ready) - ticks(busy))
    whole = shares_of(held, busy=busy, ready=ready, is_measured=False)
    assert whole == Shares(unmeasured=held[1] - held[0])


@pytest.mark.parametrize(
    ("busy", "ready", "used", "loading", "idle"),
    [
        ([], [], 0, 100, 0),
        ([], [(0, 100)], 0, 0, 100),
        ([], [(30, 500)], 0, 30, 70),
        ([(40, 60), (50, 70)], [(30, 100)], 30, 30, 40),
        ([(-10, 10)], [(0, 100)], 10, 0, 90),
        ([(90, 200)], [(0, 100)], 10, 0, 90),
        ([(10, 20)], [(15, 100)], 10, 10, 80),  # a report of being ready that came late
        ([(-50, -10)], [(-50, -10)], 0, 100, 0),
    ],
)
def test_a_slot_of_a_hundred_seconds(
    busy: list[Interval], ready: list[Interval], used: float, loading: float, idle: float
) -> None:
    shares = shares_of((0, 100), busy=busy, ready=ready, is_measured=True)
    assert shares == Shares(used=used, loading=loading, idle=idle)


def test_an_end_before_the_start_holds_nothing() -> None:
    assert shares_of((9, 3), busy=[(0, 9)], ready=[], is_measured=True) == Shares()
