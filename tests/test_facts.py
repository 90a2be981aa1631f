"""The planner's facts, read from the real database."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from bookings import fact_queries
from bookings.facts import read_facts, situations
from bookings.models import Booking
from bookings.situation import Margins, Report, Situation, Target
from lanes.models import (
    Lane,
    LoadRecord,
    ManualChoice,
    Order,
    Phase,
    PresetFailure,
    PresetRevision,
    Runtime,
)
from tests import builders
from tests.builders import NOON, at

pytestmark = pytest.mark.django_db


def situation(lane: Lane, minute: float = 0) -> Situation:
    return situations([lane], at(minute))[lane.pk]


def order(lane: Lane, revision: PresetRevision | None, **fields: object) -> Order:
    times = {"ordered_at": at(-60), "decided_at": at(-60)}
    return Order.objects.create(lane=lane, target=revision, generation=3, **{**times, **fields})


def runtime(lane: Lane, revision: PresetRevision | None, **fields: object) -> Runtime:
    assert revision is not None
    times = {"phase_since": at(-30), "started_at": at(-31), "phase": Phase.READY}
    return Runtime.objects.create(
        lane=lane, revision=revision, address="127.0.0.1", port=1, **{**times, **fields}
    )


def failure(lane: Lane, revision: PresetRevision | None, **fields: object) -> PresetFailure:
    assert revision is not None
    return PresetFailure.objects.create(
        lane=lane, revision=revision, **{"count": 2, "failed_at": at(-1), **fields}
    )


def test_a_lane_with_nothing_has_no_claims_no_order_and_no_default() -> None:
    found = situation(builders.lane("bare"))

    assert found == Situation(
        lane="bare",
        is_enabled=True,
        claims=(),
        choice=None,
        default=None,
        order=None,
        report=None,
        failures=(),
        margins=Margins(buffer=60, stop=20, least_preload=180),
        zone=found.zone,
    )


def test_the_default_is_its_newest_revision_with_its_estimate_there() -> None:
    preset = builders.preset("small", model_file=builders.model_file(size_bytes=1_500_000_000))
    newest = builders.revision(preset)
    lane = builders.lane(default_preset=preset)

    assert situation(lane).default == Target(newest.pk, "small", 25.0)


def test_loads_on_the_lane_replace_the_first_guess() -> None:
    preset = builders.preset()
    lane = builders.lane(default_preset=preset)
    LoadRecord.objects.create(
        lane=lane,
        revision=preset.revisions.get(),
        generation=1,
        started_at=at(-60),
        seconds=7.5,
        succeeded=True,
    )

    default = situation(lane).default

    assert default is not None
    assert default.load_seconds == 7.5


def test_claims_are_the_confirmed_bookings_that_are_not_over_at_most_three() -> None:
    lane = builders.lane()
    builders.booking(lane=lane, start=at(-60))  # over at noon: ends are not included
    builders.booking(lane=lane, start=at(60), state="pending")
    builders.booking(lane=lane, start=at(180), state="cancelled")
    builders.booking(lane=lane, start=at(120), state="held", held_until=at(10))
    builders.booking(start=at(0))  # another lane's
    ours = [builders.booking(lane=lane, start=at(m)) for m in (300, 0, 480, 600)]

    claims = situation(lane).claims

    assert [claim.booking_id for claim in claims] == [ours[i].pk for i in (1, 0, 2)]


def test_one_given_up_between_two_queries_is_no_claim() -> None:
    booked = builders.booking()
    lanes = list(fact_queries.lanes([booked.lane_id], NOON))
    Booking.objects.update(state="cancelled")

    assert not fact_queries.bookings(lanes).exists()


def test_a_claim_carries_who_when_and_what() -> None:
    preset = builders.preset()
    booked = builders.booking(preset=preset, start=at(10), confirmed_at=at(12), created_at=at(-5))

    (claim,) = situation(booked.lane).claims

    assert (claim.owner_id, claim.start, claim.end) == (booked.owner_id, at(10), at(70))
    assert claim.active_from == at(12)
    assert claim.target is not None
    assert claim.target.revision_id == preset.current_id


def test_a_whole_gpu_booking_is_a_claim_without_a_target() -> None:
    booked = builders.booking(kind="gpu")

    assert situation(booked.lane).claims[0].target is None


class TestPins:
    """Which revision of its preset a booking runs."""

    def edited(self, **fields: object) -> Booking:
        """A booking whose first revision is pinned, and whose preset was edited since."""
        preset = builders.preset()
        booked = builders.booking(preset=preset, pinned_revision=preset.current, **fields)
        builders.revision(preset)
        return booked

    def runs_pinned(self, booked: Booking) -> bool:
        target = situation(booked.lane).claims[0].target
        assert target is not None
        return target.revision_id == booked.pinned_revision_id

    def test_one_in_progress_runs_what_is_pinned(self) -> None:
        assert self.runs_pinned(self.edited(start=at(-5)))

    def test_one_that_the_order_is_for_runs_what_is_pinned(self) -> None:
        booked = self.edited(start=at(2))
        order(booked.lane, None, booking_id_for=booked.pk)

        assert self.runs_pinned(booked)

    def test_a_pin_left_by_another_lane_does_not_hold(self) -> None:
        assert not self.runs_pinned(self.edited(start=at(2)))

    def test_a_pin_of_another_preset_does_not_hold(self) -> None:
        booked = self.edited(start=at(-5))
        Booking.objects.filter(pk=booked.pk).update(preset=builders.preset())

        assert not self.runs_pinned(booked)


def test_the_order_and_the_newest_runtime_are_told() -> None:
    preset = builders.preset("small")
    lane = builders.lane()
    order(lane, preset.current, booking_id_for=8, booking_start_for=at(5), booking_preset_for="x")
    runtime(lane, preset.current, generation=2, ended_at=at(-40), phase=Phase.FAILED)
    runtime(lane, preset.current, generation=3)

    found = situation(lane)

    assert found.report == Report(3, preset.current_id or 0, "ready", at(-30))
    assert found.order is not None
    assert (found.order.generation, found.order.booking_id) == (3, 8)
    assert (found.order.booking_start, found.order.booking_preset) == (at(5), "x")


class TestChoices:
    """A choice counts until its time, or until a booking begins after it was made."""

    def chosen(self, lane: Lane, made: float = -10, until: float = 60) -> ManualChoice:
        return ManualChoice.objects.create(
            lane=lane, preset=builders.preset("chosen"), made_at=at(made), until=at(until)
        )

    def test_one_in_force_is_told(self) -> None:
        lane = builders.lane()
        self.chosen(lane)

        choice = situation(lane).choice

        assert choice is not None
        assert choice.target is not None
        assert (choice.target.preset, choice.until) == ("chosen", at(60))

    def test_one_whose_time_is_up_is_not(self) -> None:
        lane = builders.lane()
        self.chosen(lane, until=0)

        assert situation(lane).choice is None
        assert read_facts([lane.pk], NOON)[lane.pk].is_choice_over

    def test_a_booking_that_has_begun_and_ended_since_ends_it(self) -> None:
        lane = builders.lane()
        self.chosen(lane)
        builders.booking(lane=lane, start=at(-5), end=at(-1))

        assert situation(lane).choice is None

    def test_a_booking_confirmed_late_ends_it_when_it_is_confirmed(self) -> None:
        lane = builders.lane()
        self.chosen(lane)
        builders.booking(lane=lane, start=at(-20), end=at(20), confirmed_at=at(-5))

        assert situation(lane).choice is None

    def test_a_booking_confirmed_when_it_was_over_does_not(self) -> None:
        lane = builders.lane()
        self.chosen(lane)
        builders.booking(lane=lane, start=at(-20), end=at(-5), confirmed_at=at(-5))

        assert situation(lane).choice is not None

    def test_a_booking_that_was_in_progress_when_it_was_made_does_not(self) -> None:
        lane = builders.lane()
        builders.booking(lane=lane, start=at(-20), end=at(20))
        self.chosen(lane)

        assert situation(lane).choice is not None

    @pytest.mark.parametrize("state", ["pending", "cancelled", "rejected"])
    def test_a_booking_that_is_not_confirmed_does_not(self, state: str) -> None:
        lane = builders.lane()
        self.chosen(lane)
        builders.booking(lane=lane, start=at(-5), state=state)

        assert situation(lane).choice is not None


class TestFailures:
    """Failures count until the booking they were for is over."""

    def test_those_in_force_are_told(self) -> None:
        lane, preset = builders.lane(), builders.preset()
        failure(lane, preset.current)
        failure(lane, builders.revision(preset), count=0)

        (told,) = situation(lane).failures

        assert (told.count, told.failed_at) == (2, at(-1))

    def test_one_of_a_booking_in_progress_is_told(self) -> None:
        preset = builders.preset()
        booked = builders.booking(preset=preset)
        failure(booked.lane, preset.current, booking_id_for=booked.pk)

        assert len(situation(booked.lane).failures) == 1

    @pytest.mark.parametrize(
        "change", [{"end": NOON}, {"state": "cancelled"}, {"lane": None}], ids=str
    )
    def test_one_of_a_booking_that_is_over_or_elsewhere_is_past(
        self, change: dict[str, object]
    ) -> None:
        preset = builders.preset()
        booked = builders.booking(preset=preset, start=at(-60), end=at(60))
        failed = failure(booked.lane, preset.current, booking_id_for=booked.pk)
        if "lane" in change:
            change = {"lane": builders.lane()}
        Booking.objects.filter(pk=booked.pk).update(**change)

        facts = read_facts([booked.lane_id], NOON)[booked.lane_id]

        assert (facts.failures, facts.past_failures) == ((), (failed,))


def test_all_lanes_take_eight_queries_however_many() -> None:
    presets = [builders.preset() for _ in range(3)]
    for _ in range(5):
        lane = builders.lane(default_preset=presets[0])
        order(lane, presets[1].current)
        runtime(lane, presets[1].current, generation=3)
        failure(lane, presets[1].current)
        for hour in range(6):
            builders.booking(lane=lane, preset=presets[2], start=NOON + timedelta(hours=hour))

    # lanes (with host, order, reload); bookings; choices; runtimes; failures; revisions; loads;
    # maintenance
    with CaptureQueriesContext(connection) as queries:
        found = situations(None, NOON)

    assert len(queries) == 8
    assert len(found) == 5
    assert all(len(each.claims) == 3 for each in found.values())
