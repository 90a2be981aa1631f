"""Links of mails: for one use, by whose they are, until there is nothing left to do."""

from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import User

from bookings import services
from bookings.models import Booking, State
from lanes import clock
from lanes.refusals import Refusal
from notices import links
from notices.models import Link
from tests import builders
from tests.at_once import at_once
from tests.conftest import Moment

HOUR = timedelta(hours=1)
Action = Link.Action


def code(answer: object) -> str:
    return answer.code if isinstance(answer, Refusal) else ""


def slot() -> Booking:
    """In progress, for an hour more."""
    now = clock.database_now()
    return builders.booking(start=now - HOUR, end=now + HOUR)


@pytest.mark.django_db(transaction=True)
def test_of_several_uses_at_once_one_is_done() -> None:
    booking = slot()
    end = booking.end
    secret = links.make_link(booking, Action.EXTEND)
    answers = [code(each) for each in at_once(*[partial(links.use, secret)] * 4)]
    assert answers.count("") == 1
    assert set(answers) <= {"", "wrong_state", "busy"}
    booking.refresh_from_db()
    assert booking.end == end + timedelta(minutes=links.EXTEND_MINUTES)


@pytest.mark.django_db
def test_a_use_that_saw_it_unused_before_another_used_it_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between the look and the claim."""
    secret = links.make_link(slot(), Action.EXTEND)
    seen = links.look_up(secret)
    assert isinstance(seen, Link)
    assert code(links.use(secret)) == ""
    monkeypatch.setattr(links, "look_up", lambda _: seen)
    end = Booking.objects.get().end
    assert code(links.use(secret)) == "wrong_state"
    assert Booking.objects.get().end == end


@pytest.mark.django_db
def test_after_a_refusal_of_the_booking_it_can_be_used_again() -> None:
    booking = slot()
    secret = links.make_link(booking, Action.EXTEND)
    other = builders.person("other")
    after = builders.booking(lane=booking.lane, owner=other, start=booking.end)
    assert code(links.use(secret)) == "slot_taken"
    services.cancel(after, actor=other)
    assert code(links.use(secret)) == ""


@pytest.mark.django_db
@pytest.mark.parametrize("action", list(Action))
def test_it_is_of_no_use_once_the_booking_was_given_away(action: Link.Action) -> None:
    booking = slot()
    if action == Action.CONFIRM:
        held = {"state": State.HELD, "held_until": booking.end, "confirmed_at": None}
        Booking.objects.update(**held)
        booking.refresh_from_db()
    secret = links.make_link(booking, action)
    before = Booking.objects.values().get()
    Booking.objects.update(owner=builders.person("heir"))
    assert code(links.look_up(secret)) == "not_yours"
    assert code(links.use(secret)) == "not_yours"
    assert Booking.objects.values().get() == before | {
        "owner_id": User.objects.get(username="heir").pk
    }
    # Back with who was sent it, it is theirs again.
    Booking.objects.update(owner=booking.owner)
    assert code(links.use(secret)) == ""


@pytest.mark.django_db
def test_what_ends_a_link() -> None:
    booking = slot()
    used, old = (links.make_link(booking, Action.EXTEND) for _ in range(2))
    links.use(used)
    assert code(links.look_up(used)) == "wrong_state"
    assert code(links.look_up("x" * 43)) == "not_found"
    User.objects.update(is_active=False)
    assert code(links.look_up(old)) == "not_yours"
    User.objects.update(is_active=True)
    assert code(links.look_up(old)) == ""


@pytest.mark.django_db
def test_it_ends_with_its_slot_and_a_hold_s_when_the_hold_does(moment: Moment) -> None:
    now = moment.now
    owner = builders.person()
    held = builders.booking(
        owner=owner, start=now + HOUR, state=State.HELD, held_until=now + HOUR / 6
    )
    running = builders.booking(owner=owner, start=now - HOUR, end=now + HOUR / 2)
    take, leave = (links.make_link(held, each) for each in (Action.CONFIRM, Action.RELEASE))
    longer = links.make_link(running, Action.EXTEND)

    def codes(minutes: float) -> list[str]:
        moment.set(minutes)
        return [code(links.look_up(each)) for each in (take, leave, longer)]

    assert codes(9.9) == ["", "", ""]
    assert codes(10) == ["too_late", "too_late", ""]
    assert codes(30) == ["too_late"] * 3


@pytest.mark.django_db
def test_only_its_digest_is_kept() -> None:
    secret = links.make_link(slot(), Action.EXTEND)
    assert secret not in str(Link.objects.values().get())
