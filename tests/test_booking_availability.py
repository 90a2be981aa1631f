"""What is in the way of a slot, and the nearest free ones of the same length."""

from datetime import timedelta

import pytest
from django.utils import timezone

from bookings.availability import HORIZON
from bookings.models import State
from bookings.refusals import Interval
from lanes.models import Lane
from tests import builders
from tests.booking_cast import ask, booked, taken
from tests.builders import at
from tests.conftest import Moment


def slot(start: float, end: float) -> Interval:
    return Interval(at(start), at(end))


DAY = 24 * 60


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
    assert refusal.nearest == (slot(20, 60), slot(130, 170), slot(DAY + 70, DAY + 110))
    assert refusal.words == (
        "demo is taken 2 times between 13:00 UTC and 14:10 UTC. "
        "The nearest free: from 12:20 UTC, 14:10 UTC or 16 Jan 13:10 UTC."
    )


def test_a_slot_in_the_past_is_not_offered(lane: Lane, moment: Moment) -> None:
    booked(lane, start=at(60), end=at(120))
    moment.set(1)
    assert taken(ask(lane)).nearest[0] == slot(120, 180)
    moment.set(0)
    assert taken(ask(lane)).nearest[:2] == (slot(0, 60), slot(120, 180))


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
    assert taken(ask(lane)).nearest[:2] == (slot(0, 60), slot(120, 180))


def test_the_words_use_the_readers_zone(lane: Lane) -> None:
    booked(lane)
    with timezone.override(timezone.get_fixed_timezone(timedelta(hours=1))):
        assert "from 14:00 +0100 to 15:00 +0100" in taken(ask(lane)).words
