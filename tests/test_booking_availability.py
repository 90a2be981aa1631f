"""What is in the way of a slot, and the nearest free ones of the same length."""

from datetime import timedelta

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from bookings.availability import HORIZON, free_after, free_before
from bookings.models import State
from bookings.refusals import Interval
from lanes.models import Lane
from tests import builders
from tests.booking_cast import ask, booked, taken
from tests.builders import at
from tests.conftest import Moment


def slot(start: float, end: float) -> Interval:
    return Interval(at(start), at(end))


@pytest.mark.parametrize(
    ("busy", "after", "before"),
    [
        ([], (60, 90), (60, 90)),
        ([(60, 90)], (90, 120), (30, 60)),
        ([(70, 80)], (80, 110), (40, 70)),
        ([(60, 90), (119, 130)], (130, 160), (30, 60)),
        ([(60, 90), (120, 130)], (90, 120), (30, 60)),
        ([(31, 40), (60, 90)], (90, 120), (1, 31)),
        ([(20, 30), (60, 90)], (90, 120), (30, 60)),
        ([(0, 10), (40, 65), (65, 100)], (100, 130), (10, 40)),
        ([(0, 500)], (500, 530), (-30, 0)),
    ],
)
def test_the_nearest_free_slots(
    busy: list[tuple[int, int]], after: tuple[int, int], before: tuple[int, int]
) -> None:
    held = [slot(*interval) for interval in busy]
    following = [interval for interval in held if interval.end > at(60)]
    earlier = [interval for interval in reversed(held) if interval.start < at(90)]
    assert free_after(following, slot(60, 90)) == slot(*after)
    assert free_before(earlier, slot(60, 90)) == slot(*before)


@given(st.lists(st.booleans(), max_size=40), st.integers(0, 40), st.integers(1, 10))
def test_no_nearer_slot_is_free(minutes: list[bool], start: int, length: int) -> None:
    busy = [slot(n, n + 1) for n, is_busy in enumerate(minutes) if is_busy]
    wanted = slot(start, start + length)

    def is_free(n: int) -> bool:
        return all(b.end <= at(n) or b.start >= at(n + length) for b in busy)

    after = next(n for n in range(start, 100) if is_free(n))
    before = next(n for n in range(start, -100, -1) if is_free(n))
    assert free_after([b for b in busy if b.end > wanted.start], wanted).start == at(after)
    earlier = [b for b in reversed(busy) if b.start < wanted.end]
    assert free_before(earlier, wanted).start == at(before)


@pytest.fixture
def lane(moment: Moment, db: None) -> Lane:
    return builders.lane("demo")


def test_a_refusal_names_all_that_is_in_the_way_and_both_neighbours(lane: Lane) -> None:
    first = booked(lane, start=at(60), end=at(90))
    second = booked(lane, start=at(100), end=at(130))
    refusal = taken(ask(lane, start=at(70), end=at(110)))
    assert refusal.conflicts == (
        Interval(at(60), at(90), first.pk),
        Interval(at(100), at(130), second.pk),
    )
    assert refusal.nearest == (slot(20, 60), slot(130, 170))
    assert refusal.words == (
        "demo is taken 2 times between 13:00 UTC and 14:10 UTC. "
        "It is free for as long from 12:20 UTC or 14:10 UTC."
    )


def test_a_slot_in_the_past_is_not_offered(lane: Lane, moment: Moment) -> None:
    booked(lane, start=at(60), end=at(120))
    moment.set(1)
    assert taken(ask(lane)).nearest == (slot(120, 180),)
    moment.set(0)
    assert taken(ask(lane)).nearest == (slot(0, 60), slot(120, 180))


def test_a_slot_beyond_the_horizon_is_not_offered(lane: Lane) -> None:
    last = at(0) + HORIZON
    booked(lane, start=at(0), end=last)
    refusal = taken(ask(lane))
    assert refusal.nearest == ()
    assert "No slot of that length is free" in refusal.words


def test_what_is_given_up_or_on_another_lane_is_free(lane: Lane) -> None:
    booked(lane)
    booked(builders.lane(), start=at(120), end=at(180))
    given_up = {"state": State.CANCELLED, "kind": "gpu", "preset": None}
    builders.booking(lane=lane, start=at(120), **given_up)
    assert taken(ask(lane)).nearest == (slot(0, 60), slot(120, 180))


def test_the_words_use_the_readers_zone(lane: Lane) -> None:
    booked(lane)
    with timezone.override(timezone.get_fixed_timezone(timedelta(hours=1))):
        assert "from 14:00 +0100 to 15:00 +0100" in taken(ask(lane)).words
