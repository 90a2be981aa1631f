"""What the planner writes beside an order: pins, reloads, restarts, and what is over."""

import pytest

from bookings import choices
from bookings.models import Booking
from lanes.models import Lane, LaneEvent, ManualChoice, Order, Phase, ReloadRequest
from tests import builders
from tests.builders import NOON, administrator, at, person
from tests.planning_cast import Clock, failing, pinned, serving

pytest_plugins = ["tests.planning_fixtures"]
pytestmark = pytest.mark.django_db


class TestPins:
    """A booking keeps the revision that was first ordered for it."""

    def test_a_preload_pins_and_a_later_edit_does_not_reach_it(self, time: Clock) -> None:
        preset = builders.preset()
        booking = builders.booking(preset=preset, start=at(2))
        first = preset.current
        time.plan(0)
        builders.revision(preset)

        time.plan(1)
        time.plan(3)

        order = Order.objects.get(lane=booking.lane)
        assert (order.target, order.generation) == (first, 1)
        assert first is not None
        assert pinned(booking) == first.pk

    def test_an_edit_before_the_preload_reaches_it(self, time: Clock) -> None:
        preset = builders.preset()
        booking = builders.booking(preset=preset, start=at(60))
        time.plan(0)
        assert pinned(booking) is None
        newest = builders.revision(preset)

        time.plan(59)

        assert pinned(booking) == newest.pk

    @pytest.mark.parametrize(
        "change",
        [{"state": "cancelled"}, {"start": at(200), "end": at(260), "original_end": at(260)}],
        ids=str,
    )
    def test_a_commitment_that_is_given_up_drops_the_pin(
        self, time: Clock, change: dict[str, object]
    ) -> None:
        booking = builders.booking(start=at(2))
        time.plan(0)
        Booking.objects.update(**change)

        time.plan(1)

        assert pinned(booking) is None
        assert Order.objects.get(lane=booking.lane).booking_id_for is None

    def test_one_moved_to_another_lane_is_pinned_anew_there(self, time: Clock) -> None:
        preset = builders.preset()
        booking = builders.booking(preset=preset, start=at(2))
        time.plan(0)
        newest, elsewhere = builders.revision(preset), builders.lane()
        Booking.objects.update(lane=elsewhere)

        time.plan(1)
        time.plan(1.5)

        assert pinned(booking) == newest.pk
        assert Order.objects.get(lane=elsewhere).target == newest

    def test_one_that_has_begun_keeps_its_pin_when_it_is_over(self, time: Clock) -> None:
        booking = builders.booking(end=at(10))
        time.plan(0)
        kept = pinned(booking)

        time.plan(10)

        assert pinned(booking) == kept is not None

    def test_a_whole_gpu_booking_has_none(self, time: Clock) -> None:
        booking = builders.booking(kind="gpu")

        time.plan(0)

        assert pinned(booking) is None

    def test_a_booking_in_fallback_is_pinned_too(self, time: Clock) -> None:
        lane = builders.lane(default_preset=builders.preset())
        preset = builders.preset()
        booking = builders.booking(lane=lane, preset=preset)
        failing(lane, preset, failed_at=NOON, booking_id_for=booking.pk)

        time.plan(0)

        order = Order.objects.get(lane=lane)
        assert order.is_fallback
        assert pinned(booking) == preset.current_id


class TestReload:
    """Reload restarts at once, forgets failures, and takes the newest revision."""

    def asked(self, lane: Lane, minute: float) -> None:
        ReloadRequest.objects.update_or_create(lane=lane, defaults={"asked_at": at(minute)})

    def test_it_raises_the_generation_once(self, time: Clock) -> None:
        lane = builders.lane(default_preset=builders.preset())
        time.plan(0)
        self.asked(lane, 1)

        time.plan(1)
        time.plan(2)

        order = Order.objects.get(lane=lane)
        assert (order.generation, order.is_reload, order.fresh_from) == (2, True, 2)
        assert order.reload_asked_at == at(1)
        assert LaneEvent.objects.filter(lane=lane, kind="restart").count() == 1

    def test_a_booking_in_progress_gets_its_presets_newest_revision(self, time: Clock) -> None:
        preset = builders.preset()
        booking = builders.booking(preset=preset)
        time.plan(0)
        newest = builders.revision(preset)
        self.asked(booking.lane, 1)

        time.plan(1)

        order = Order.objects.get(lane=booking.lane)
        assert (order.target, order.generation, order.is_reload) == (newest, 2, True)
        assert pinned(booking) == newest.pk

    def test_a_booking_being_preloaded_gets_it_too(self, time: Clock) -> None:
        preset = builders.preset()
        booking = builders.booking(preset=preset, start=at(2))
        time.plan(0)
        newest = builders.revision(preset)
        self.asked(booking.lane, 1)

        time.plan(1)
        time.plan(2)

        order = Order.objects.get(lane=booking.lane)
        assert (order.target, order.generation, order.rule) == (newest, 2, 1)
        assert pinned(booking) == newest.pk

    def test_failures_are_forgotten_and_the_booked_preset_is_tried(self, time: Clock) -> None:
        preset = builders.preset()
        lane = builders.lane(default_preset=builders.preset())
        booking = builders.booking(lane=lane, preset=preset)
        failed = failing(lane, preset, failed_at=NOON, booking_id_for=booking.pk)
        time.plan(0)
        self.asked(lane, 0.1)

        time.plan(0.1)

        failed.refresh_from_db()
        order = Order.objects.get(lane=lane)
        assert (failed.count, order.target, order.is_fallback) == (0, preset.current, False)
        assert order.is_reload

    def test_with_nothing_to_run_it_raises_nothing(self, time: Clock) -> None:
        lane = builders.lane()
        time.plan(0)
        self.asked(lane, 1)

        time.plan(1)

        order = Order.objects.get(lane=lane)
        assert (order.generation, order.reload_asked_at) == (0, at(1))

    def test_the_next_target_drains_again(self, time: Clock) -> None:
        preset = builders.preset()
        lane = builders.lane(default_preset=preset)
        time.plan(0)
        self.asked(lane, 1)
        time.plan(1)
        builders.revision(preset)

        time.plan(2)

        order = Order.objects.get(lane=lane)
        assert (order.generation, order.is_reload, order.fresh_from) == (3, False, 2)


class TestOwnerChange:
    """Lanes that restart when another person's slot begins."""

    def adjacent(self, **lane_fields: bool) -> Lane:
        """Two adjacent slots of one preset, of two people; the first one's server is ready."""
        lane, preset = builders.lane("adjacent", **lane_fields), builders.preset()
        builders.booking(lane=lane, preset=preset, end=at(30))
        member = person("member")
        builders.booking(lane=lane, preset=preset, start=at(30), end=at(60), owner=member)
        return lane

    def test_the_server_restarts_with_a_drain(self, time: Clock) -> None:
        lane = self.adjacent(restart_on_owner_change=True)
        time.plan(0)
        serving(lane)

        time.plan(30)

        order = Order.objects.get(lane=lane)
        assert (order.generation, order.is_reload, order.fresh_from) == (2, False, 2)
        assert order.owner_id_for == person("member").pk

    def test_a_lane_without_the_setting_keeps_its_server(self, time: Clock) -> None:
        lane = self.adjacent()
        time.plan(0)
        serving(lane)

        time.plan(30)

        assert Order.objects.get(lane=lane).generation == 1

    @pytest.mark.parametrize("is_set", [True, False])
    def test_a_slot_that_is_given_away_restarts_it_where_that_is_set(
        self, time: Clock, is_set: bool
    ) -> None:
        lane = self.adjacent(restart_on_owner_change=is_set)
        time.plan(0)
        serving(lane)
        Booking.objects.filter(lane=lane, start=NOON).update(owner=person("heir"))

        time.plan(10)

        order = Order.objects.get(lane=lane)
        assert order.generation == (2 if is_set else 1)
        assert order.booking_id_for == lane.bookings.earliest("start").pk

    def test_sharing_a_slot_restarts_nothing(self, time: Clock) -> None:
        lane = self.adjacent(restart_on_owner_change=True)
        time.plan(0)
        serving(lane)
        lane.bookings.earliest("start").shares.create(member=person("guest"), added_at=at(5))

        time.plan(10)

        assert Order.objects.get(lane=lane).generation == 1

    def test_one_that_still_loads_has_nothing_to_tell(self, time: Clock) -> None:
        lane = self.adjacent(restart_on_owner_change=True)
        time.plan(0)
        serving(lane, Phase.STARTING)

        time.plan(30)

        assert Order.objects.get(lane=lane).generation == 1


class TestEndings:
    """Choices and failures that are over."""

    def test_a_choice_ends_at_its_time(self, time: Clock) -> None:
        lane = builders.lane()
        choices.choose(lane, preset=builders.preset(), until=at(5), actor=administrator())
        time.plan(0)
        assert Order.objects.get(lane=lane).rule == 4

        time.plan(5)

        assert ManualChoice.objects.get().ended_at == at(5)
        assert Order.objects.get(lane=lane).target is None
        told = LaneEvent.objects.filter(lane=lane, kind="choice").first()
        assert told is not None
        assert told.sentence.endswith("has ended: its time is up")

    def test_a_choice_ends_when_a_booking_begins_and_does_not_come_back(self, time: Clock) -> None:
        lane = builders.lane()
        choices.choose(lane, preset=builders.preset(), until=at(90), actor=administrator())
        builders.booking(lane=lane, start=at(10), end=at(20))

        time.plan(10)
        time.plan(20)

        assert ManualChoice.objects.get().ended_at == at(10)
        assert Order.objects.get(lane=lane).rule == 5

    def test_failures_end_with_the_booking_they_were_for(self, time: Clock) -> None:
        preset = builders.preset()
        booking = builders.booking(preset=preset, end=at(30))
        failed = failing(booking.lane, preset, failed_at=NOON, booking_id_for=booking.pk)
        lasting = failing(booking.lane, builders.preset(), failed_at=NOON)
        time.plan(0)

        time.plan(30)

        failed.refresh_from_db()
        lasting.refresh_from_db()
        assert (failed.count, lasting.count) == (0, 1)
