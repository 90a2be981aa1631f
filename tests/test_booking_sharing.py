"""Sharing a booking: who may, with whom, and whom it concerns then."""

import pytest
from django.contrib.auth.models import User

from bookings import services
from bookings.models import Booking, BookingShare
from bookings.sharing import MOST
from gateway.route_facts import read_shares
from lanes.models import Lane, LaneEvent, Notice
from tests import builders
from tests.booking_cast import booked, code, done
from tests.builders import at
from tests.conftest import Moment

pytestmark = pytest.mark.django_db


@pytest.fixture
def lane(moment: Moment) -> Lane:
    return builders.lane("demo")


@pytest.fixture
def booking(lane: Lane) -> Booking:
    return booked(lane)


@pytest.fixture
def guest() -> User:
    return builders.person("guest")


def share(booking: Booking, member: User, actor: User | None = None) -> Booking:
    return done(services.share(booking, actor=actor or booking.owner, member=member))


def test_it_is_published_while_it_is_shared(booking: Booking, guest: User) -> None:
    assert read_shares(at(0)) == {}
    share(booking, guest)
    assert read_shares(at(0)) == {str(booking.pk): [guest.pk]}
    done(services.end_share(booking, actor=booking.owner, member=guest))
    assert read_shares(at(0)) == {}


def test_shares_of_what_is_not_confirmed_or_long_over_are_not_published(
    booking: Booking, guest: User
) -> None:
    share(booking, guest)
    assert read_shares(at(120 + 61)) == {}
    assert read_shares(at(-60 * 24 * 8)) == {}
    done(services.cancel(booking, actor=booking.owner))
    assert read_shares(at(0)) == {}


def test_only_its_owner_and_administrators_share_it(booking: Booking, guest: User) -> None:
    assert code(services.share(booking, actor=guest, member=guest)) == "not_yours"
    share(booking, guest, actor=builders.administrator())


def test_with_whom_it_cannot_be_shared(booking: Booking, guest: User) -> None:
    gone = builders.person("gone", is_active=False)
    for member, refusal in ((gone, "unknown_member"), (booking.owner, "is_owner")):
        assert code(services.share(booking, actor=booking.owner, member=member)) == refusal
    share(booking, guest)
    assert code(services.share(booking, actor=booking.owner, member=guest)) == "exists"
    assert BookingShare.objects.count() == 1


def test_there_are_not_too_many(booking: Booking, guest: User) -> None:
    for number in range(MOST):
        share(booking, builders.person(f"member-{number}"))
    assert code(services.share(booking, actor=booking.owner, member=guest)) == "too_many"


def test_once_it_is_over_nothing_is_changed(booking: Booking, guest: User, moment: Moment) -> None:
    share(booking, guest)
    moment.set(120)
    other = builders.person("member")
    assert code(services.share(booking, actor=booking.owner, member=other)) == "too_late"
    for actor in (booking.owner, guest):
        assert code(services.end_share(booking, actor=actor, member=guest)) == "too_late"


def test_a_guest_may_leave_but_change_nothing_else(booking: Booking, guest: User) -> None:
    other = builders.person("member")
    share(booking, guest)
    share(booking, other)
    assert code(services.end_share(booking, actor=guest, member=other)) == "not_yours"
    assert code(services.cancel(booking, actor=guest)) == "not_yours"
    done(services.end_share(booking, actor=guest, member=guest))
    assert code(services.end_share(booking, actor=guest, member=guest)) == "not_found"
    assert LaneEvent.objects.latest("pk").sentence.startswith("guest left the shared booking")


def test_the_guest_is_told_and_the_history_keeps_it(booking: Booking, guest: User) -> None:
    share(booking, guest)
    (notice,) = Notice.objects.filter(kind="shared")
    assert (notice.recipient, notice.booking_id_for) == (guest, booking.pk)
    assert "owner shares a booking with you: the whole GPU on demo" in notice.sentence
    event = LaneEvent.objects.latest("pk")
    assert (event.kind, event.booking_id_for) == ("booking.shared", booking.pk)


def test_it_concerns_its_owner_its_guests_and_administrators(booking: Booking, guest: User) -> None:
    share(booking, guest)
    stranger = builders.person("stranger")
    seen = [
        Booking.objects.of_people(person).filter(pk=booking.pk).exists()
        for person in (booking.owner, guest, builders.administrator(), stranger)
    ]
    assert seen == [True, True, True, False]
    assert list(Booking.objects.shared_with(guest)) == [booking]
    assert not Booking.objects.shared_with(booking.owner).exists()
