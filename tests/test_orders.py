"""Carrying out a decision whose facts have changed since: whoever was first keeps his word."""

from dataclasses import replace

import pytest

from bookings.facts import LaneFacts, read_facts, situation_of
from bookings.models import Booking
from bookings.orders import Result, carry_out
from bookings.planner import decide
from bookings.planning import plan_lanes
from bookings.situation import Decision
from lanes.models import Lane, Order, Preset, PresetFailure, ReloadRequest
from tests import builders
from tests.builders import NOON, at
from tests.conftest import Moment

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("moment")]


def seen(lane: Lane) -> tuple[LaneFacts, Decision]:
    """What a planner knows of the lane and decides, before it writes."""
    facts = read_facts([lane.pk], NOON)[lane.pk]
    return facts, decide(situation_of(facts), NOON)


def pinned(booking: Booking) -> int | None:
    booking.refresh_from_db()
    return booking.pinned_revision_id


def test_of_two_with_the_same_facts_the_second_writes_nothing_though_the_clock_stands() -> None:
    lane = builders.lane()
    plan_lanes()
    facts, decision = seen(lane)

    first = carry_out(facts, replace(decision, sentence="first"))
    second = carry_out(facts, replace(decision, sentence="second"))

    assert (first, second) == (Result.WRITTEN, Result.LOST)
    assert Order.objects.get(lane=lane).sentence == "first"


@pytest.mark.parametrize("change", ["preset", "state", "lane"])
def test_a_booking_that_was_changed_meanwhile_is_not_pinned(change: str) -> None:
    booking = builders.booking()
    facts, decision = seen(booking.lane)
    changes: dict[str, Preset | Lane | str] = {
        "preset": builders.preset(),
        "state": "cancelled",
        "lane": builders.lane(),
    }
    Booking.objects.update(**{change: changes[change]})

    assert carry_out(facts, decision) is Result.WRITTEN
    assert pinned(booking) is None


def test_the_lane_that_a_booking_left_does_not_drop_the_pin_of_its_new_lane(moment: Moment) -> None:
    preset = builders.preset()
    booking = builders.booking(preset=preset, start=at(2))
    plan_lanes()
    left, newest = booking.lane, builders.revision(preset)
    Booking.objects.update(lane=builders.lane())
    booking.refresh_from_db()

    plan_lanes([booking.lane_id])
    plan_lanes([booking.lane_id])
    plan_lanes([left.pk])

    assert Order.objects.get(lane=left).booking_id_for is None
    assert pinned(booking) == newest.pk


def test_a_failure_after_a_reload_was_planned_is_not_forgotten() -> None:
    preset = builders.preset()
    lane = builders.lane(default_preset=preset)
    failed = PresetFailure.objects.create(
        lane=lane, revision=preset.revisions.get(), count=1, failed_at=at(-5)
    )
    ReloadRequest.objects.create(lane=lane, asked_at=NOON)
    facts, decision = seen(lane)
    PresetFailure.objects.update(count=2, failed_at=NOON)

    assert carry_out(facts, decision) is Result.WRITTEN
    failed.refresh_from_db()
    assert failed.count == 2
