"""Buckets of rate limits: the arithmetic, and the same in Valkey's script."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge import buckets
from gateway.edge.buckets import Bucket, Limit

MINUTE = 60.0
gaps = st.lists(st.floats(0, 30), min_size=1, max_size=80)


def requests(per_minute: int, **fields: float) -> Limit:
    return Limit("token:1:requests", per_minute, Bucket(**fields), is_counted=True)


def tokens(per_minute: int, **fields: float) -> Limit:
    return Limit("token:1:tokens", per_minute, Bucket(**fields), is_counted=False)


def admitted(limits: list[Limit], at: float, most: int, share: int = 1) -> int:
    """How many of so many requests at one moment are let in."""
    return sum(buckets.admit(limits, at, share) is None for _ in range(most))


@pytest.mark.parametrize("per_minute", [1, 7, 60, 1000])
def test_a_burst_is_one_minutes_worth_and_no_more(per_minute: int) -> None:
    assert admitted([requests(per_minute)], 5.0, 2 * per_minute) == per_minute


@given(st.integers(1, 120), gaps)
def test_no_window_lets_in_more_than_a_burst_and_what_refills(
    per_minute: int, gaps: list[float]
) -> None:
    limit, now, times = requests(per_minute), 0.0, []
    for gap in gaps:
        now += gap
        times += [now] * admitted([limit], now, 3)
    for first, begin in enumerate(times):
        for last in range(first, len(times)):
            most = per_minute + (times[last] - begin) * per_minute / MINUTE
            assert last - first + 1 <= most + 1e-3


@given(st.integers(1, 600), st.floats(0, 5000))
def test_after_the_wait_it_is_let_in_and_just_before_it_is_not(
    per_minute: int, used: float
) -> None:
    limit = requests(per_minute, used=used)
    full = buckets.admit([limit], 0.0)
    if full is None:
        return
    assert buckets.admit([limit], full.seconds * 0.999 - 1e-3) is not None
    assert buckets.admit([limit], full.seconds + 1e-3) is None


def test_tokens_may_go_below_nothing_and_then_must_refill() -> None:
    limit = tokens(100)
    assert buckets.admit([limit], 0.0) is None
    buckets.charge(limit, 300, 0.0)
    full = buckets.admit([limit], 0.0)
    assert full is not None
    assert full.seconds == pytest.approx(201 * MINUTE / 100)


def test_who_is_refused_by_one_limit_uses_nothing_of_the_others() -> None:
    mine, owner = requests(10), requests(2)
    assert admitted([mine, owner], 0.0, 5) == 2
    assert mine.bucket.used == 2


def test_the_limit_that_lasts_longest_is_named() -> None:
    short, long = requests(60, used=60), requests(6, used=6)
    full = buckets.admit([short, long], 0.0)
    assert full is not None
    assert full.limit is long
    assert full.seconds == pytest.approx(10.0)


@pytest.mark.parametrize(("per_minute", "edges", "each"), [(60, 3, 20), (10, 4, 2), (2, 3, 1)])
def test_without_an_answer_each_edge_gives_out_its_share_and_at_least_one(
    per_minute: int, edges: int, each: int
) -> None:
    assert admitted([requests(per_minute)], 0.0, per_minute, edges) == each


def test_a_limit_of_nothing_lets_nobody_in() -> None:
    assert admitted([requests(0)], 1e6, 3) == 0


@pytest.mark.parametrize("change", [buckets.tell, buckets.refill])
def test_what_has_refilled_need_not_be_told(change: Callable[[Limit, float], object]) -> None:
    limit = requests(60)
    admitted([limit], 0.0, 30)
    change(limit, 20.0)
    assert (limit.bucket.used, limit.bucket.untold) in {(10.0, 10.0), (10.0, 0.0)}


def test_what_all_have_used_is_learnt_beside_what_they_do_not_know_yet() -> None:
    limit = requests(60)
    admitted([limit], 0.0, 5)
    buckets.tell(limit, 0.0)
    admitted([limit], 0.0, 2)
    buckets.learn(limit, 20.0, 0.0)
    assert (limit.bucket.used, limit.bucket.untold) == (22.0, 2.0)


def test_what_another_edge_has_left_counts_from_then_on() -> None:
    limit = requests(60, used=5.0, at=100.0)
    buckets.inherit(limit, Bucket(50.0, 90.0), 100.0)
    assert limit.bucket.used == pytest.approx(40.0)


def test_what_others_are_taken_to_have_used_is_told_to_nobody() -> None:
    limit = requests(12)
    assert admitted([limit], 0.0, 9, share=3) == 4
    assert buckets.known(limit.bucket) == buckets.tell(limit, 0.0) == 4.0
    buckets.learn(limit, 8.0, 0.0)
    assert (limit.bucket.used, buckets.known(limit.bucket)) == (8.0, 8.0)


@given(st.lists(st.tuples(st.floats(0, 40), st.integers(0, 50)), max_size=30))
def test_what_is_known_never_is_less_than_what_is_to_be_told(
    steps: list[tuple[float, int]],
) -> None:
    limit, now = tokens(60), 0.0
    for gap, amount in steps:
        now += gap
        buckets.charge(limit, amount, now, share=1 + amount % 3)
        assert 0 <= limit.bucket.untold <= buckets.known(limit.bucket) + 1e-6
