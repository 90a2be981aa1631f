"""Several connections at once: what an invitation opens, and what a removed member books."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection

from bookings import services
from bookings.models import Booking
from bookings.states import OCCUPYING
from lanes import clock
from lanes.refusals import Refusal
from slotserve.invitations import accept, invite
from slotserve.members import Member, Removed, remove_member, save_member
from slotserve.models import Invitation
from tests import builders
from tests.at_once import at_once
from tests.fleet import until

pytestmark = pytest.mark.django_db(transaction=True)
on_postgres = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="NOT TESTED: SLOTSERVE_TEST_POSTGRES is not set"
)
ROUNDS = 5


def codes(answers: list[object]) -> list[str]:
    """Why each was refused, or nothing; in order."""
    return sorted(each.code if isinstance(each, Refusal) else "" for each in answers)


def invitation(chief: User) -> Invitation:
    """One for whoever has the link."""
    week = timedelta(days=7)
    made = invite(actor=chief, email="", groups=[], is_administrator=False, lifetime=week)
    assert not isinstance(made, Refusal)
    return made[0]


def joining(link: Invitation, username: str) -> Callable[[], User | Refusal]:
    """To accept it under this name."""
    return partial(accept, link, username=username, password="quite a secret")


def test_an_invitation_that_is_used_twice_at_once_makes_one_account() -> None:
    chief = builders.administrator()
    for turn in range(ROUNDS):
        link = invitation(chief)
        answers = at_once(joining(link, f"ada-{turn}"), joining(link, f"bob-{turn}"))
        assert codes(answers) == ["", "wrong_state"]
        assert User.objects.filter(username__endswith=f"-{turn}").count() == 1


def test_two_who_choose_the_same_name_at_once_are_not_both_taken() -> None:
    chief = builders.administrator()
    for turn in range(ROUNDS):
        links = invitation(chief), invitation(chief)
        answers = at_once(*(joining(link, f"ada-{turn}") for link in links))
        assert codes(answers) == ["", "name_taken"]


@on_postgres
@pytest.mark.postgres
def test_members_are_locked_by_key_when_one_is_removed() -> None:
    alice, chief = builders.person("alice"), builders.administrator()
    assert alice.pk < chief.pk
    lock = "SELECT 1 FROM auth_user WHERE id = %s FOR NO KEY UPDATE"
    waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ILIKE %s"
    plain = connection.get_connection_params() | {"cursor_factory": None}
    with psycopg.connect(**plain) as transfer, psycopg.connect(**plain, autocommit=True) as seen:

        def give() -> None:
            """To the administrator, as a transfer does; the first lock is taken already."""
            try:
                until(lambda: seen.execute(waits, ["%auth_user%"]).fetchone() is not None)
                transfer.execute(f"{lock} NOWAIT", [chief.pk])
            finally:
                transfer.rollback()

        transfer.execute(lock, [alice.pk])
        remove = partial(remove_member, alice, actor=chief, releases=True)
        assert isinstance(at_once(remove, give)[0], Removed)


def test_whoever_is_removed_while_she_books_keeps_nothing() -> None:
    chief, lane, preset = builders.administrator(), builders.lane(), builders.preset()
    for turn in range(ROUNDS):
        alice = builders.person(f"alice-{turn}")
        start = clock.database_now() + timedelta(hours=turn + 1)
        end = start + timedelta(hours=1)
        wish: dict[str, Any] = {
            "lane": lane,
            "kind": "model",
            "preset": preset,
            "start": start,
            "end": end,
        }
        booked, removed = at_once(
            partial(services.book, owner=alice, **wish),
            partial(remove_member, alice, actor=chief, releases=True),
        )
        assert isinstance(removed, Removed)
        assert isinstance(booked, Booking) or codes([booked]) == ["owner_inactive"]
        assert removed.given_back == isinstance(booked, Booking)
        assert not Booking.objects.filter(owner=alice, state__in=OCCUPYING).exists()


def test_two_administrators_who_take_each_others_rights_do_not_both_succeed() -> None:
    for turn in range(ROUNDS):
        User.objects.update(is_staff=False)
        ada, bob = (builders.person(f"{name}-{turn}", is_staff=True) for name in ("ada", "bob"))
        deeds = (
            partial(
                save_member,
                person,
                Member(person.username, "", "", "", is_administrator=False, is_active=True),
                [],
                actor=actor,
            )
            for person, actor in ((ada, bob), (bob, ada))
        )
        assert codes(at_once(*deeds)) == ["", "last_administrator"]
        assert User.objects.filter(is_staff=True, is_active=True).count() == 1
