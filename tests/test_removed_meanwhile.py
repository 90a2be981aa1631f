"""A member who is removed while a request of hers is under way: it gives her nothing any more."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from allauth.account.adapter import get_adapter
from django.contrib.admin import site
from django.contrib.auth.models import User
from django.test import RequestFactory

from bookings import services, waitlist
from bookings.models import Booking, Waiting
from bookings.recurrence import Every, Pattern
from bookings.series import AskedSeries, book_series
from bookings.waitlist import Wanted
from gateway.browser_tokens import make_browser_token
from gateway.models import ApiToken
from gateway.tokens import create_token
from lanes import clock
from lanes.models import Lane
from lanes.refusals import Refusal
from slotserve.admin import PasswordForm
from slotserve.members import remove_member
from tests import builders

pytestmark = pytest.mark.django_db
Deed = Callable[[User, Lane, datetime], object]
HOUR = timedelta(hours=1)


def _book(person: User, lane: Lane, start: datetime) -> object:
    wish: dict[str, Any] = {"kind": "gpu", "preset": None, "start": start, "end": start + HOUR}
    return services.book(owner=person, lane=lane, **wish)


def _book_series(person: User, lane: Lane, start: datetime) -> object:
    wall = start.replace(tzinfo=None)
    pattern = Pattern(Every.DAY, count=3)
    asked = AskedSeries(lane, "gpu", None, wall, wall + HOUR, "UTC", pattern)
    return book_series(owner=person, asked=asked)


def _wait(person: User, lane: Lane, start: datetime) -> object:
    wanted = Wanted([lane], "gpu", None, 60, start, start + 2 * HOUR)
    return waitlist.wait(owner=person, wanted=wanted)


def _make_token(person: User, lane: Lane, start: datetime) -> object:
    return create_token(owner=person, name="x", scopes=["read"], lanes=[], expires_at=None)


def _play(person: User, lane: Lane, start: datetime) -> object:
    return make_browser_token(person, "session")


DEEDS = [_book, _book_series, _wait, _make_token, _play]


@pytest.fixture
def lane() -> Lane:
    return builders.lane("demo")


@pytest.fixture
def alice() -> User:
    """As her request has read her."""
    return builders.person("alice", is_staff=True)


def remove(person: User) -> None:
    chief = builders.administrator()
    removed = remove_member(User.objects.get(pk=person.pk), actor=chief, releases=True)
    assert not isinstance(removed, Refusal)


@pytest.mark.parametrize("deed", DEEDS)
def test_a_member_gets_what_she_asks_for(deed: Deed, lane: Lane, alice: User) -> None:
    assert not isinstance(deed(alice, lane, clock.database_now() + HOUR), Refusal)


@pytest.mark.parametrize("deed", DEEDS)
def test_who_was_removed_meanwhile_gets_nothing(deed: Deed, lane: Lane, alice: User) -> None:
    remove(alice)
    answer = deed(alice, lane, clock.database_now() + HOUR)
    assert isinstance(answer, Refusal)
    assert answer.code == "owner_inactive"
    for kind in (Booking, Waiting, ApiToken):
        assert not kind._default_manager.exists()


def _changes_her_password(alice: User) -> None:
    get_adapter().set_password(alice, "another long password")


def _is_given_a_password(alice: User) -> None:
    typed = {"password1": "another long word", "password2": "another long word"}
    form = PasswordForm(alice, typed | {"usable_password": "true"})
    assert form.is_valid(), form.errors
    form.save()


def _is_saved_in_the_admin(alice: User) -> None:
    request = RequestFactory().post("/")
    site.get_model_admin(User).save_model(request, alice, None, True)


@pytest.mark.parametrize(
    "deed", [_changes_her_password, _is_given_a_password, _is_saved_in_the_admin]
)
def test_nobody_who_was_removed_comes_back_by_what_was_read_before(
    deed: Callable[[User], None], alice: User
) -> None:
    remove(alice)
    deed(alice)
    kept = User.objects.get(pk=alice.pk)
    assert (kept.is_active, kept.is_staff) == (False, False)


@pytest.mark.parametrize("deed", [_changes_her_password, _is_given_a_password])
def test_a_member_has_the_password_that_was_set(deed: Callable[[User], None], alice: User) -> None:
    deed(alice)
    assert User.objects.get(pk=alice.pk).check_password(
        "another long password" if deed is _changes_her_password else "another long word"
    )
