"""Giving a booking to another member: who may, whose rules judge it, and what everybody is told."""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

import pytest
from django.contrib.auth.models import User

from bookings import services
from bookings.models import Booking, BookingShare, Policy, Series, State
from bookings.refusals import RulesBroken
from bookings.rule_keeping import Silence, release_no_shows
from gateway.route_facts import read_lanes
from lanes.models import Lane, LaneEvent, Notice, Phase, Runtime
from tests import builders
from tests.booking_cast import ask, booked, code, done
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
def heir() -> User:
    return builders.person("heir")


def give(booking: Booking, to: User, actor: User | None = None) -> Any:
    return services.transfer(booking, actor=actor or booking.owner, to=to)


def test_the_new_owner_has_it_as_it_was(booking: Booking, heir: User) -> None:
    preset = builders.preset()
    Booking.objects.update(kind="model", preset=preset, pinned_revision=preset.current)
    given = done(give(booking, heir))
    given.refresh_from_db()
    assert (given.owner, given.state, given.start, given.end) == (
        heir,
        State.CONFIRMED,
        at(60),
        at(120),
    )
    assert given.pinned_revision == preset.current
    assert code(services.cancel(given, actor=booking.owner)) == "not_yours"
    done(services.cancel(given, actor=heir))


def test_administrators_give_what_is_of_others_and_strangers_do_not(
    booking: Booking, heir: User
) -> None:
    assert code(give(booking, heir, actor=heir)) == "not_yours"
    done(give(booking, heir, actor=builders.administrator()))


def to_nobody(booking: Booking) -> User:
    return builders.person("gone", is_active=False)


def to_its_owner(booking: Booking) -> User:
    return booking.owner


@pytest.mark.parametrize(
    ("to", "refusal"), [(to_nobody, "unknown_member"), (to_its_owner, "is_owner")]
)
def test_it_goes_to_another_member_who_may_log_in(
    booking: Booking, to: Callable[[Booking], User], refusal: str
) -> None:
    assert code(give(booking, to(booking))) == refusal
    assert not Notice.objects.exists()


def test_what_is_over_or_given_up_is_given_to_nobody(
    booking: Booking, heir: User, moment: Moment
) -> None:
    moment.set(120)
    assert code(give(booking, heir)) == "too_late"
    moment.set(0)
    done(services.cancel(booking, actor=booking.owner))
    assert code(give(booking, heir)) == "wrong_state"


def test_the_new_owners_quota_judges_it_and_the_old_ones_is_free(
    lane: Lane, booking: Booking, heir: User
) -> None:
    Policy.objects.create(bookings_ahead=1)
    hers = booked(builders.lane(), heir)
    answer = give(booking, heir)
    assert isinstance(answer, RulesBroken)
    assert "heir cannot have it: 1 booking ahead of 1" in answer.words
    done(services.cancel(hers, actor=heir))
    assert code(ask(builders.lane(), booking.owner)) == "rules_broken"
    done(give(booking, heir))
    booked(builders.lane(), booking.owner)


def test_a_start_that_she_did_not_choose_is_not_held_against_her(
    booking: Booking, heir: User
) -> None:
    Policy.objects.create(notice_minutes=600)
    done(give(booking, heir))


def test_who_may_not_book_there_is_given_nothing(booking: Booking, heir: User) -> None:
    Policy.objects.create(may_book_gpu=False)
    assert code(give(booking, heir)) == "rules_broken"


def test_where_rules_want_approval_an_administrator_gives_it(
    lane: Lane, booking: Booking, heir: User
) -> None:
    Lane.objects.update(needs_approval=True)
    assert code(give(booking, heir)) == "needs_approval"
    given = done(give(booking, heir, actor=builders.administrator()))
    assert given.state == State.CONFIRMED


def test_a_pending_one_goes_on_waiting(lane: Lane, heir: User) -> None:
    Lane.objects.update(needs_approval=True)
    assert done(give(booked(lane), heir)).state == State.PENDING


def test_its_shares_end_as_its_new_owner_did_not_choose_them(booking: Booking, heir: User) -> None:
    done(services.share(booking, actor=booking.owner, member=heir))
    done(give(booking, heir))
    assert not BookingShare.objects.exists()


def test_in_progress_it_is_hers_from_now_so_that_his_requests_may_finish(
    lane: Lane, booking: Booking, heir: User, moment: Moment
) -> None:
    moment.set(90)
    done(give(booking, heir))
    (grant,) = read_lanes(at(90))[0].grants
    assert (grant.owner_id, grant.start, grant.end) == (
        heir.pk,
        at(90).timestamp(),
        at(120).timestamp(),
    )


def test_before_its_start_the_grant_begins_with_it(booking: Booking, heir: User) -> None:
    done(give(booking, heir))
    (grant,) = read_lanes(at(0))[0].grants
    assert grant.start == at(60).timestamp()


def test_who_was_given_it_late_has_the_time_of_a_no_show_before_her(
    lane: Lane, heir: User, moment: Moment
) -> None:
    Policy.objects.create(no_show_minutes=10)
    preset = builders.preset()
    assert preset.current is not None
    booking = booked(lane, kind="model", preset=preset)
    Runtime.objects.create(
        lane=lane,
        revision=preset.current,
        generation=1,
        phase=Phase.READY,
        phase_since=at(55),
        started_at=at(50),
        ready_at=at(55),
        address="127.0.0.1",
        port=18100,
        sealed_key="sealed",
    )
    moment.set(65)
    done(give(booking, heir))
    assert release_no_shows(at(71), all_silent) == 0
    moment.set(76)
    assert release_no_shows(at(76), all_silent) == 1


def all_silent(slugs: Collection[str], now: datetime) -> Silence:
    return Silence(slugs, at(-1000))


def test_both_are_told_once_and_the_history_says_who_did_it(booking: Booking, heir: User) -> None:
    done(give(booking, heir))
    told = {n.recipient: n for n in Notice.objects.filter(kind="transferred")}
    assert "owner transferred a booking to you: the whole GPU on demo" in told[heir].sentence
    assert told[heir].booking_id_for == booking.pk
    assert told[heir].read_at is None
    assert "transferred to heir" in told[booking.owner].sentence
    assert told[booking.owner].read_at is not None  # he did it himself
    event = LaneEvent.objects.latest("pk")
    assert (event.kind, event.booking_id_for) == ("booking.transferred", booking.pk)
    assert event.sentence == (
        "owner gave the booking to heir: the whole GPU, 13:00 UTC to 14:00 UTC"
    )


def test_an_administrators_deed_is_told_to_both(booking: Booking, heir: User) -> None:
    done(give(booking, heir, actor=builders.administrator()))
    assert Notice.objects.filter(read_at=None).count() == 2
    assert LaneEvent.objects.latest("pk").sentence.startswith(
        "administrator gave the booking of owner to heir"
    )


def test_one_of_a_series_leaves_it(lane: Lane, booking: Booking, heir: User) -> None:
    series = Series.objects.create(
        owner=booking.owner, zone="UTC", every="daily", count=2, created_at=at(0)
    )
    Booking.objects.update(series=series)
    assert done(give(booking, heir)).series is None
