"""Waiting for time: what becomes free is held for the first who fits, then for the next."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from bookings import services, waitlist, waitlist_keeping
from bookings.interval import Interval
from bookings.models import Booking, Policy, State, Status, Waiting
from bookings.settling import GONE
from bookings.waitlist import Wanted
from bookings.waitlist_keeping import end_holds, offer_freed
from lanes.models import Lane, LaneEvent, Maintenance
from lanes.refusals import Refusal
from slotserve.members import remove_member
from tests import builders
from tests.booking_cast import ask, booked, code, done
from tests.builders import at
from tests.conftest import Moment


@pytest.fixture
def lane(moment: Moment, db: None) -> Lane:
    return builders.lane("demo")


@pytest.fixture
def owner(db: None) -> User:
    return builders.person("owner")


@pytest.fixture
def held(lane: Lane, owner: User) -> Booking:
    """The lane is taken from 12:00 to 16:00."""
    return booked(lane, owner, start=at(0), end=at(240))


def wait(name: str, *lanes: Lane, **changed: Any) -> Waiting:
    answer = waitlist.wait(owner=builders.person(name), wanted=wanted(*lanes, **changed))
    assert isinstance(answer, Waiting), answer
    return answer


def wanted(*lanes: Lane, **changed: Any) -> Wanted:
    """An hour of the whole GPU between 13:00 and 16:00."""
    values: dict[str, Any] = {
        "lanes": lanes,
        "kind": "gpu",
        "preset": None,
        "minutes": 60,
        "opens": at(60),
        "closes": at(240),
    }
    return Wanted(**(values | changed))


def holds() -> list[tuple[str, datetime]]:
    found = Booking.objects.filter(state=State.HELD).order_by("start")
    return list(found.values_list("owner__username", "start"))


def lane_of(waiting: Waiting) -> Lane:
    return waiting.lanes.get()


# What may come between the look and the lock.
MEANWHILE: dict[str, Callable[[Waiting], object]] = {
    "nothing": lambda _: None,
    "rules": lambda _: Policy.objects.create(may_book_gpu=False),
    "disabled": lambda _: Lane.objects.update(enabled=False),
    "maintenance": lambda each: Maintenance.objects.create(
        lane=lane_of(each), start=at(0), end=at(300)
    ),
    "taken": lambda each: builders.booking(lane=lane_of(each), start=at(60), end=at(240)),
    "left": lambda each: waitlist.leave(each, actor=each.owner),
    "removed": lambda each: User.objects.filter(pk=each.owner_id).update(is_active=False),
    "too late": lambda each: Waiting.objects.filter(pk=each.pk).update(opens=at(-9), closes=at(-1)),
}


class TestHolding:
    """The first who fits."""

    def test_nothing_is_held_while_nothing_is_free(self, lane: Lane, held: Booking) -> None:
        wait("ada", lane)
        assert offer_freed(at(0)) == 0

    def test_what_is_given_back_is_held_for_the_first_and_then_the_next(
        self, lane: Lane, held: Booking, owner: User, moment: Moment
    ) -> None:
        wait("ada", lane)
        wait("bob", lane, minutes=120)
        done(services.release(held, actor=owner))
        assert offer_freed(moment.set(1)) == 2
        assert offer_freed(moment.set(1)) == 0
        assert holds() == [("ada", at(60)), ("bob", at(120))]
        assert code(ask(lane, start=at(60), end=at(90))) == "slot_taken"
        sentence = LaneEvent.objects.filter(kind="booking.held").earliest("pk").sentence
        assert sentence.startswith("The lane is held for ada, who waited for it: the whole GPU, ")

    def test_who_does_not_fit_is_passed_over_and_stays(
        self, lane: Lane, held: Booking, owner: User
    ) -> None:
        wait("ada", lane, minutes=180)
        wait("bob", lane)
        done(services.move(held, actor=owner, start=at(0), end=at(170)))
        assert offer_freed(at(0)) == 1
        assert holds() == [("bob", at(170))]

    def test_however_many_do_not_fit_whoever_does_is_served(
        self, lane: Lane, held: Booking, owner: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(waitlist_keeping, "MOST_JUDGED", 1)
        for number in range(3):
            wait(f"ada-{number}", lane, minutes=180)
        wait("bob", lane)
        wait("cy", lane)
        done(services.move(held, actor=owner, start=at(0), end=at(120)))
        assert offer_freed(at(0)) == 1  # the first who is judged, and no more at one look
        assert holds() == [("bob", at(120))]
        assert offer_freed(at(0)) == 1

    def test_what_one_was_given_is_nobody_elses_at_the_same_look(
        self, lane: Lane, held: Booking, owner: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[tuple[int, datetime]] = []

        def hold(waiting: int, lane: int, slot: Interval) -> Refusal:
            asked.append((waiting, slot.start))
            return GONE  # somebody else was faster

        monkeypatch.setattr(waitlist_keeping, "_hold", hold)
        first, second = wait("ada", lane), wait("bob", lane)
        done(services.move(held, actor=owner, start=at(0), end=at(120)))
        assert offer_freed(at(0)) == 0
        assert asked == [(first.pk, at(120)), (second.pk, at(180))]

    @pytest.mark.parametrize("meanwhile", MEANWHILE)
    def test_what_is_so_no_more_under_lock_is_not_held(
        self, lane: Lane, monkeypatch: pytest.MonkeyPatch, meanwhile: str
    ) -> None:
        wait("ada", lane)
        slot_for = waitlist_keeping._Look.slot_for

        def seen(look: Any, waiting: Waiting) -> object:
            found = slot_for(look, waiting)
            assert found is not None
            MEANWHILE[meanwhile](waiting)
            return found

        monkeypatch.setattr(waitlist_keeping._Look, "slot_for", seen)
        assert offer_freed(at(0)) == (meanwhile == "nothing")
        assert len(holds()) == (meanwhile == "nothing")

    def test_rules_are_kept(self, lane: Lane, held: Booking, owner: User) -> None:
        Policy.objects.create(max_minutes=30)
        wait("ada", lane)
        wait("bob", lane, minutes=30)
        done(services.release(held, actor=owner))
        assert offer_freed(at(0)) == 1
        assert holds() == [("bob", at(60))]

    def test_the_earliest_of_several_lanes_is_taken(
        self, lane: Lane, held: Booking, owner: User
    ) -> None:
        other = builders.lane("other")
        booked(other, owner, start=at(0), end=at(90))
        wait("ada", lane, other)
        assert offer_freed(at(0)) == 1
        assert holds() == [("ada", at(90))]

    def test_one_hold_for_a_member_at_a_time(self, lane: Lane, moment: Moment) -> None:
        wait("ada", lane)
        wait("ada", lane)
        assert offer_freed(at(0)) == 1
        assert offer_freed(at(0)) == 1

    def test_a_window_that_has_begun_gives_what_is_left(
        self, lane: Lane, held: Booking, owner: User, moment: Moment
    ) -> None:
        wait("ada", lane)
        moment.set(170)
        done(services.release(held, actor=owner))
        assert offer_freed(moment.now) == 1
        hold = Booking.objects.get(state=State.HELD)
        assert (hold.start, hold.end) == (at(170), at(230))

    def test_a_window_that_is_too_short_by_now_gives_nothing(
        self, lane: Lane, moment: Moment
    ) -> None:
        wait("ada", lane)
        assert offer_freed(moment.set(190)) == 0

    def test_time_under_maintenance_is_not_offered(self, lane: Lane) -> None:
        Maintenance.objects.create(lane=lane, start=at(0), end=at(150))
        wait("ada", lane)
        assert offer_freed(at(0)) == 1
        assert holds() == [("ada", at(150))]

    @pytest.mark.parametrize("is_removed", [True, False], ids=["removed", "locked out"])
    def test_who_is_no_member_any_more_keeps_nobody_waiting(
        self, lane: Lane, is_removed: bool
    ) -> None:
        gone = wait("ada", lane, minutes=180).owner
        wait("bob", lane)
        if is_removed:
            remove_member(gone, actor=builders.administrator(), releases=True)
            User.objects.filter(pk=gone.pk).update(is_active=True)  # who comes back waits anew
        else:
            User.objects.filter(pk=gone.pk).update(is_active=False)
        assert offer_freed(at(0)) == 1
        assert holds() == [("bob", at(60))]

    def test_who_was_removed_meanwhile_does_not_begin_to_wait(self, lane: Lane) -> None:
        gone = builders.person("gone")
        User.objects.filter(pk=gone.pk).update(is_active=False)
        answer = waitlist.wait(owner=gone, wanted=wanted(lane))
        assert isinstance(answer, Refusal)
        assert answer.code == "owner_inactive"
        assert not Waiting.objects.exists()

    def test_a_lane_that_is_disabled_gives_nothing(self, lane: Lane) -> None:
        wait("ada", lane)
        Lane.objects.update(enabled=False)
        assert offer_freed(at(0)) == 0

    def test_a_lane_that_is_disabled_is_passed_over_for_another(
        self, lane: Lane, owner: User
    ) -> None:
        other = builders.lane("other")
        booked(other, owner, start=at(0), end=at(90))
        wait("ada", lane, other)
        Lane.objects.filter(pk=lane.pk).update(enabled=False)
        assert offer_freed(at(0)) == 1
        assert Booking.objects.get(state=State.HELD).lane == other

    def test_a_hold_does_not_outlast_its_slot(self, lane: Lane) -> None:
        wait("ada", lane, minutes=5, opens=at(0))
        assert offer_freed(at(0)) == 1
        assert Booking.objects.get(state=State.HELD).held_until == at(5)

    def test_with_nobody_waiting_one_look_is_all(
        self, lane: Lane, django_assert_num_queries: Any
    ) -> None:
        with django_assert_num_queries(2):  # who waits; what is held
            assert offer_freed(at(0)) == 0
            assert end_holds(at(0)) == 0

    def test_the_queries_do_not_grow_with_who_waits(
        self, lane: Lane, django_assert_num_queries: Any
    ) -> None:
        Policy.objects.create(day_hours=0.5)
        for name in ("ada", "bob", "cy"):
            wait(name, lane)
        # who waits, their lanes and groups; rules, presets; the lane's bookings and maintenance;
        # what all of them hold
        with django_assert_num_queries(8):
            assert offer_freed(at(0)) == 0


class TestConfirming:
    """A hold becomes a booking, or passes on."""

    @pytest.fixture
    def hold(self, lane: Lane) -> Booking:
        wait("ada", lane)
        wait("bob", lane)
        offer_freed(at(0))
        return Booking.objects.get(owner__username="ada")

    def test_its_member_confirms_it(self, hold: Booking, moment: Moment) -> None:
        assert hold.status(at(0)) is Status.HELD
        assert (hold.held_until, hold.confirmed_at) == (at(10), None)
        moment.set(5)
        booking = done(waitlist.confirm(hold, actor=hold.owner))
        assert (booking.state, booking.confirmed_at) == (State.CONFIRMED, at(5))
        assert end_holds(moment.set(11)) == 1  # bob's
        assert code(waitlist.confirm(booking, actor=hold.owner)) == "wrong_state"

    def test_where_the_lane_wants_approval_it_waits_for_that(self, hold: Booking) -> None:
        Policy.objects.create(approval="always")
        assert done(waitlist.confirm(hold, actor=hold.owner)).state == State.PENDING

    def test_an_administrators_waits_for_no_approval(self, hold: Booking) -> None:
        Policy.objects.create(approval="always")
        User.objects.filter(pk=hold.owner_id).update(is_staff=True)
        assert done(waitlist.confirm(hold, actor=hold.owner)).state == State.CONFIRMED

    def test_not_confirmed_it_passes_to_the_next(
        self, hold: Booking, lane: Lane, moment: Moment
    ) -> None:
        wait("cleo", lane, closes=at(130))
        assert offer_freed(moment.set(9)) == 0
        assert end_holds(moment.set(10)) == 2
        assert end_holds(moment.now) == 0
        assert hold.status(moment.now) is Status.LAPSED
        assert code(waitlist.confirm(hold, actor=hold.owner)) == "wrong_state"
        assert offer_freed(moment.now) == 1
        assert holds() == [("cleo", at(60))]

    def test_too_late_even_when_nobody_has_looked_yet(self, hold: Booking, moment: Moment) -> None:
        moment.set(10)
        assert code(waitlist.confirm(hold, actor=hold.owner)) == "too_late"

    def test_declined_it_passes_on_at_once(self, hold: Booking, lane: Lane) -> None:
        wait("cleo", lane, closes=at(130))
        done(services.cancel(hold, actor=hold.owner))
        assert offer_freed(at(0)) == 1
        assert ("cleo", at(60)) in holds()

    def test_it_is_nobody_elses_and_not_changed_before(self, hold: Booking) -> None:
        assert code(waitlist.confirm(hold, actor=builders.person("stranger"))) == "not_yours"
        moved = services.move(hold, actor=hold.owner, start=at(61), end=at(120))
        assert code(moved) == "wrong_state"
        assert code(services.extend(hold, actor=hold.owner, end=at(121))) == "wrong_state"

    def test_the_database_alone_keeps_others_out(self, hold: Booking, lane: Lane) -> None:
        with pytest.raises(IntegrityError), transaction.atomic():
            builders.booking(lane=lane, start=hold.start, end=hold.end)


class TestWaiting:
    """Joining and leaving."""

    @pytest.mark.parametrize(
        ("changed", "expected"),
        [
            ({"lanes": ()}, "unknown_lane"),
            ({"minutes": 0}, "bad_length"),
            ({"minutes": 181}, "bad_length"),
            ({"opens": at(0).replace(tzinfo=None)}, "naive_time"),
            ({"closes": at(-5)}, "in_the_past"),
            ({"closes": at(60)}, "ends_before_start"),
            ({"closes": at(400 * 1440)}, "too_far"),
            ({"kind": "model"}, "wrong_kind"),
            ({"kind": "none"}, "wrong_kind"),
            ({"purpose": "x" * 201}, "bad_purpose"),
        ],
    )
    def test_refused_wishes(
        self, lane: Lane, owner: User, changed: dict[str, Any], expected: str
    ) -> None:
        answer = waitlist.wait(owner=owner, wanted=wanted(*changed.pop("lanes", [lane]), **changed))
        assert isinstance(answer, Refusal)
        assert answer.code == expected

    def test_enough_is_enough(self, lane: Lane, owner: User) -> None:
        for _ in range(waitlist.MOST):
            wait("owner", lane)
        answer = waitlist.wait(owner=owner, wanted=wanted(lane))
        assert isinstance(answer, Refusal)
        assert answer.code == "too_many"

    def test_who_leaves_is_given_nothing(self, lane: Lane, owner: User) -> None:
        waiting = wait("owner", lane)
        refused = waitlist.leave(waiting, actor=builders.person("stranger"))
        assert isinstance(refused, Refusal)
        assert isinstance(waitlist.leave(waiting, actor=owner), Waiting)
        assert offer_freed(at(0)) == 0
        refused = waitlist.leave(waiting, actor=owner)
        assert isinstance(refused, Refusal)
        assert refused.code == "wrong_state"

    def test_an_administrator_may_end_it(self, lane: Lane) -> None:
        waiting = wait("ada", lane)
        assert isinstance(waitlist.leave(waiting, actor=builders.administrator()), Waiting)

    def test_a_window_that_began_before_begins_now(self, lane: Lane) -> None:
        assert wait("ada", lane, opens=at(-60)).opens == at(0)
