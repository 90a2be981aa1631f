"""Releasing, cancelling, approving, rejecting and restoring."""

from collections.abc import Callable

import pytest

from bookings import services
from bookings.models import Booking, State, Status
from lanes.models import Lane, LaneEvent
from lanes.refusals import Refusal
from tests import builders
from tests.booking_cast import ask, booked, code, done
from tests.builders import at
from tests.conftest import Moment

pytestmark = pytest.mark.django_db
Service = Callable[..., Booking | Refusal]


@pytest.fixture
def lane(moment: Moment) -> Lane:
    return builders.lane("demo")


@pytest.fixture
def booking(lane: Lane) -> Booking:
    return booked(lane)


@pytest.fixture
def waiting(lane: Lane) -> Booking:
    Lane.objects.update(needs_approval=True)
    return booked(lane)


def by_owner(service: Service, booking: Booking) -> Booking | Refusal:
    return service(booking, actor=booking.owner)


def by_administrator(service: Service, booking: Booking) -> Booking | Refusal:
    return service(booking, actor=builders.administrator())


def test_a_release_ends_it_now_and_keeps_the_original_end(
    lane: Lane, booking: Booking, moment: Moment
) -> None:
    moment.set(75)
    released = done(by_owner(services.release, booking))
    assert (released.end, released.original_end, released.released_at) == (at(75), at(120), at(75))
    assert released.status(at(75)) is Status.RELEASED
    booked(lane, builders.person("member"), start=None, end=at(120))


@pytest.mark.parametrize("minutes", [0, 60])
def test_releasing_what_has_not_been_used_cancels_it(
    booking: Booking, moment: Moment, minutes: int
) -> None:
    moment.set(minutes)
    released = done(by_owner(services.release, booking))
    assert (released.state, released.end) == (State.CANCELLED, at(120))


def test_a_second_release_comes_too_late(booking: Booking, moment: Moment) -> None:
    moment.set(75)
    done(by_owner(services.release, booking))
    assert code(by_owner(services.release, booking)) == "too_late"


def test_a_cancelled_booking_frees_its_time(lane: Lane, booking: Booking) -> None:
    assert done(by_owner(services.cancel, booking)).state == State.CANCELLED
    booked(lane, builders.person("member"))
    assert code(by_owner(services.cancel, booking)) == "wrong_state"


def test_what_is_in_progress_is_released_not_cancelled(booking: Booking, moment: Moment) -> None:
    moment.set(60)
    answer = by_owner(services.cancel, booking)
    assert isinstance(answer, Refusal)
    assert (answer.code, "release" in answer.words) == ("wrong_state", True)


def test_a_waiting_booking_can_be_cancelled_even_after_its_start(
    waiting: Booking, moment: Moment
) -> None:
    moment.set(75)
    assert done(by_owner(services.cancel, waiting)).state == State.CANCELLED


@pytest.mark.parametrize("service", [services.release, services.cancel])
def test_only_the_owner_and_administrators_give_it_back(booking: Booking, service: Service) -> None:
    assert code(service(booking, actor=builders.person("member"))) == "not_yours"
    done(by_administrator(service, booking))


def test_an_approval_confirms_from_now(waiting: Booking, moment: Moment) -> None:
    moment.set(75)
    approved = done(by_administrator(services.approve, waiting))
    assert (approved.state, approved.confirmed_at) == (State.CONFIRMED, at(75))
    assert approved.decided_by == builders.administrator()
    assert approved.status(at(75)) is Status.IN_PROGRESS


def test_a_rejection_frees_the_time(lane: Lane, waiting: Booking) -> None:
    assert done(by_administrator(services.reject, waiting)).state == State.REJECTED
    booked(lane, builders.person("member"))


@pytest.mark.parametrize("service", [services.approve, services.reject])
def test_members_decide_nothing(waiting: Booking, service: Service) -> None:
    assert code(by_owner(service, waiting)) == "not_administrator"


@pytest.mark.parametrize("service", [services.approve, services.reject])
def test_only_what_waits_can_be_decided(booking: Booking, service: Service) -> None:
    assert code(by_administrator(service, booking)) == "wrong_state"


@pytest.mark.parametrize(
    "service",
    [services.approve, services.reject, services.release, services.cancel],
)
def test_at_its_end_it_is_too_late(waiting: Booking, moment: Moment, service: Service) -> None:
    moment.set(120)
    assert code(by_administrator(service, waiting)) == "too_late"


def test_nothing_is_approved_on_a_disabled_lane(waiting: Booking) -> None:
    Lane.objects.update(enabled=False)
    assert code(by_administrator(services.approve, waiting)) == "lane_disabled"
    done(by_administrator(services.reject, waiting))


def test_a_cancelled_booking_can_be_restored(booking: Booking) -> None:
    done(by_owner(services.cancel, booking))
    restored = done(by_owner(services.restore, booking))
    assert (restored.state, restored.start, restored.end) == (State.CONFIRMED, at(60), at(120))


def test_only_what_is_left_is_restored(booking: Booking, moment: Moment) -> None:
    done(by_owner(services.cancel, booking))
    moment.set(75)
    assert done(by_owner(services.restore, booking)).start == at(75)


def test_a_slot_taken_meanwhile_is_not_restored(lane: Lane, booking: Booking) -> None:
    done(by_owner(services.cancel, booking))
    booked(lane, builders.person("member"), start=at(119), end=at(130))
    assert code(by_owner(services.restore, booking)) == "slot_taken"
    assert Booking.objects.get(pk=booking.pk).state == State.CANCELLED


def test_restoring_where_approval_is_needed_asks_again(booking: Booking) -> None:
    Lane.objects.update(needs_approval=True)
    done(by_owner(services.cancel, booking))
    restored = done(by_owner(services.restore, booking))
    assert (restored.state, restored.confirmed_at) == (State.PENDING, None)


def test_a_rejection_is_undone_by_administrators_alone(waiting: Booking) -> None:
    done(by_administrator(services.reject, waiting))
    assert code(by_owner(services.restore, waiting)) == "not_administrator"
    assert done(by_administrator(services.restore, waiting)).state == State.CONFIRMED


def test_restoring_has_its_limits(lane: Lane, booking: Booking, moment: Moment) -> None:
    assert code(by_owner(services.restore, booking)) == "wrong_state"
    done(by_owner(services.cancel, booking))
    assert code(services.restore(booking, actor=builders.person("member"))) == "not_yours"
    Lane.objects.update(enabled=False)
    assert code(by_owner(services.restore, booking)) == "lane_disabled"
    moment.set(120)
    assert code(by_owner(services.restore, booking)) == "too_late"
    Booking.objects.all().delete()
    assert code(by_owner(services.restore, booking)) == "wrong_state"


def test_every_change_leaves_its_event(lane: Lane, waiting: Booking) -> None:
    done(by_administrator(services.approve, waiting))
    done(by_owner(services.cancel, waiting))
    done(by_administrator(services.restore, waiting))
    kinds = LaneEvent.objects.order_by("pk").values_list("kind", "actor__username")
    assert list(kinds) == [
        ("booking.created", "owner"),
        ("booking.approved", "administrator"),
        ("booking.cancelled", "owner"),
        ("booking.restored", "administrator"),
    ]
    assert LaneEvent.objects.latest("pk").sentence == (
        "administrator restored the booking of owner: the whole GPU, 13:00 UTC to 14:00 UTC"
    )


def test_a_refused_change_leaves_no_event(lane: Lane, booking: Booking) -> None:
    before = LaneEvent.objects.count()
    assert code(ask(lane)) == "slot_taken"
    assert code(services.cancel(booking, actor=builders.person("member"))) == "not_yours"
    assert LaneEvent.objects.count() == before
