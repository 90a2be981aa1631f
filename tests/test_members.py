"""Members: changed, removed with all they hold, and never the last administrator."""

from datetime import timedelta
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import Group, User
from django.core import mail
from django.test import Client
from rest_framework.test import APIClient

from bookings import services
from bookings.models import Booking, Policy, State
from gateway.models import ApiToken
from gateway.tokens import create_token
from lanes import clock
from lanes.refusals import Refusal
from slotserve import members as service
from slotserve import tasks
from slotserve.account_mail import FAREWELL_MAIL
from slotserve.members import Member, Removed, remove_member, save_member
from tests import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def chief() -> User:
    """The one administrator."""
    return builders.administrator()


@pytest.fixture
def alice() -> User:
    """A member with an address."""
    return builders.person("alice", email="alice@example.org")


def wish(**changes: Any) -> Member:
    """alice as she is, but for these."""
    held = {"username": "alice", "email": "alice@example.org", "first_name": "", "last_name": ""}
    return Member(**{**held, "is_administrator": False, "is_active": True, **changes})


def booking(owner: User, hours: float) -> Booking:
    """An hour that begins so many hours from now."""
    start = clock.database_now() + timedelta(hours=hours)
    return builders.booking(owner=owner, start=start)


def client_of(user: User) -> Client:
    """A browser that is logged in."""
    client = Client()
    client.force_login(user)
    return client


# --- Removing ---------------------------------------------------------------------------------


def test_a_removed_member_loses_all_but_history(alice: User, chief: User) -> None:
    past, ahead = booking(alice, -5), booking(alice, 5)
    create_token(owner=alice, name="n", scopes=["read"], lanes=[], expires_at=None)
    browser = client_of(alice)
    done = remove_member(alice, actor=chief, releases=False)
    assert done == Removed(given_back=1, kept=0, revoked=1)
    ahead.refresh_from_db()
    past.refresh_from_db()
    assert (ahead.state, past.state) == (State.CANCELLED, State.CONFIRMED)
    assert ApiToken.objects.filter(revoked_at=None).count() == 0
    assert browser.get("/").status_code == 302
    # Not even once somebody lets her in again.
    User.objects.update(is_active=True)
    assert browser.get("/").status_code == 302
    assert not User.objects.get(pk=alice.pk).has_usable_password()


@pytest.mark.parametrize("address", ["alice@example.org", ""])
def test_who_is_removed_is_told_of_it_where_there_is_an_address(
    alice: User, chief: User, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    User.objects.filter(pk=alice.pk).update(email=address)
    alice.refresh_from_db()
    booking(alice, 5)
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(service, "ask_for", lambda *of: asked.append(of))
    remove_member(alice, actor=chief, releases=False)
    assert asked == ([(FAREWELL_MAIL, alice.pk, 1)] if address else [])


@pytest.mark.parametrize(("releases", "kept"), [(True, 0), (False, 1)])
def test_the_booking_in_progress_ends_if_asked_for(
    alice: User, chief: User, releases: bool, kept: int
) -> None:
    running = booking(alice, -0.5)
    done = remove_member(alice, actor=chief, releases=releases)
    running.refresh_from_db()
    assert done == Removed(given_back=1 - kept, kept=kept, revoked=0)
    assert (running.released_at is not None) is releases


def test_nothing_is_booked_for_who_was_removed_meanwhile(alice: User, chief: User) -> None:
    lane, preset = builders.lane(), builders.preset()
    seen = User.objects.get(pk=alice.pk)
    remove_member(alice, actor=chief, releases=True)
    start = clock.database_now() + timedelta(hours=1)
    end = start + timedelta(hours=1)
    asked: dict[str, Any] = {
        "lane": lane,
        "kind": "model",
        "preset": preset,
        "start": start,
        "end": end,
    }
    refused = services.book(owner=seen, **asked)
    assert isinstance(refused, Refusal)
    assert refused.code == "owner_inactive"
    assert isinstance(services.book(owner=chief, **asked), Booking)


def test_what_was_booked_while_it_was_removed_is_given_back(
    alice: User, chief: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    shut = service._shut_out

    def booked_just_before(held: User) -> int:
        booking(alice, 3)
        return shut(held)

    monkeypatch.setattr(service, "_shut_out", booked_just_before)
    remove_member(alice, actor=chief, releases=False)
    assert Booking.objects.get().state == State.CANCELLED


def test_a_removal_that_stopped_half_way_is_finished_by_another(alice: User, chief: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)
    booking(alice, 3)
    done = remove_member(alice, actor=chief, releases=False)
    assert isinstance(done, Removed)
    assert done.given_back == 1


def test_nobody_removes_herself_and_members_remove_nobody(alice: User, chief: User) -> None:
    for person, actor, code in (
        (chief, chief, "not_yourself"),
        (chief, alice, "not_administrator"),
    ):
        refused = remove_member(person, actor=actor, releases=True)
        assert isinstance(refused, Refusal)
        assert refused.code == code
    assert User.objects.get(pk=chief.pk).is_active


def test_the_last_administrator_stays(chief: User) -> None:
    gone = builders.person("gone", is_staff=True, is_active=False)
    refused = remove_member(chief, actor=gone, releases=True)
    assert isinstance(refused, Refusal)
    assert refused.code == "last_administrator"
    second = builders.person("second", is_staff=True)
    assert isinstance(remove_member(chief, actor=second, releases=True), Removed)


def test_who_is_removed_is_told(alice: User, chief: User) -> None:
    remove_member(alice, actor=chief, releases=True)
    tasks.mail_farewell(alice.pk, 2)
    (sent,) = mail.outbox
    assert sent.to == ["alice@example.org"]
    assert "2 bookings were cancelled" in str(sent.body)


# --- Changing ---------------------------------------------------------------------------------


def test_a_member_gets_a_name_an_address_groups_and_power(alice: User, chief: User) -> None:
    group = Group.objects.create(name="lab")
    changed = wish(username="ada", email="ada@example.org", is_administrator=True)
    saved = save_member(alice, changed, [group], actor=chief)
    assert isinstance(saved, User)
    assert (saved.username, saved.is_staff, saved.is_superuser) == ("ada", True, True)
    assert list(saved.groups.all()) == [group]
    assert EmailAddress.objects.get(user=alice, verified=True).email == "ada@example.org"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"username": "administrator"}, "name_taken"),
        ({"username": "not a name"}, "bad_name"),
        ({"email": "nonsense"}, "bad_email"),
        ({"email": "Taken@example.org"}, "name_taken"),
    ],
)
def test_what_cannot_be_is_refused(
    alice: User, chief: User, change: dict[str, Any], code: str
) -> None:
    EmailAddress.objects.create(user=chief, email="taken@example.org")
    refused = save_member(alice, wish(**change), [], actor=chief)
    assert isinstance(refused, Refusal)
    assert refused.code == code
    assert User.objects.get(pk=alice.pk).username == "alice"


def test_nobody_takes_her_own_rights_away(chief: User) -> None:
    refused = save_member(chief, wish(username="administrator"), [], actor=chief)
    assert isinstance(refused, Refusal)
    assert refused.code == "not_yourself"


# --- Pages and REST ---------------------------------------------------------------------------


def test_the_pages_list_change_and_remove(alice: User, chief: User) -> None:
    client, path = client_of(chief), f"/administration/members/{alice.pk}/"
    assert "alice@example.org" in client.get("/administration/members/?q=ALI").content.decode()
    assert "alice@" not in client.get("/administration/members/?q=bob").content.decode()
    sent = {"username": "alice", "email": "alice@example.org", "first_name": "Al", "is_active": "1"}
    assert client.post(path, sent).status_code == 302
    assert client.post(path, {**sent, "username": "administrator"}).status_code == 400
    page = client.post(f"{path}remove/", {"release": "1"}, follow=True).content.decode()
    assert "alice is removed" in page
    assert not User.objects.get(pk=alice.pk).is_active


def test_groups_are_made_renamed_and_deleted(chief: User) -> None:
    client = client_of(chief)
    assert client.post("/administration/groups/", {"name": "lab"}).status_code == 302
    assert client.post("/administration/groups/", {"name": "LAB"}).status_code == 400
    group = Group.objects.get()
    client.post(f"/administration/groups/{group.pk}/rename/", {"name": "team"})
    assert Group.objects.get().name == "team"
    for wrong in ("", "x" * 151, "nul\0"):
        answer = client.post(f"/administration/groups/{group.pk}/rename/", {"name": wrong})
        assert answer.status_code == 400
    Group.objects.create(name="other")
    answer = client.post(f"/administration/groups/{group.pk}/rename/", {"name": "Other"})
    assert 'value="Other"' in answer.content.decode(), "what was typed stays"
    assert client.get(f"/administration/groups/{group.pk}/rename/").status_code == 302
    Group.objects.get(name="other").delete()
    assert Group.objects.get().name == "team"
    client.post(f"/administration/groups/{group.pk}/remove/")
    assert not Group.objects.exists()


@pytest.mark.parametrize("page", ["members/", "members/1/", "groups/", "invitations/"])
def test_members_see_none_of_it(alice: User, page: str) -> None:
    assert client_of(alice).get(f"/administration/{page}").status_code == 403


def test_rest_changes_and_removes(alice: User, chief: User) -> None:
    client = APIClient()
    client.force_login(chief)
    path = f"/api/v1/members/{alice.pk}/"
    assert client.patch(path, {"first_name": "Al"}, format="json").json()["first_name"] == "Al"
    refused = client.post(f"/api/v1/members/{chief.pk}/remove/", {}, format="json")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_yourself")
    answer = client.post(f"{path}remove/", {"release": True}, format="json")
    assert answer.json() == {"given_back": 0, "kept": 0, "revoked": 0}
    client.force_login(builders.person("bob"))
    assert client.patch(path, {"first_name": "x"}, format="json").status_code == 403


def test_rest_makes_renames_and_deletes_groups(alice: User, chief: User) -> None:
    client, path = APIClient(), "/api/v1/groups/"
    client.force_login(chief)
    made = client.post(path, {"name": "lab"}, format="json")
    assert (made.status_code, made.json()["members"]) == (201, 0)
    alice.groups.set(Group.objects.all())
    at = f"{path}{made.json()['id']}/"
    assert client.patch(at, {"name": "team"}, format="json").json()["members"] == 1
    assert client.post(path, {"name": "TEAM"}, format="json").json()["code"] == "name_taken"
    unread = client.patch(at, {"name": "x", "members": 3}, format="json").json()
    assert "cannot be changed" in unread["fields"]["members"]
    Policy.objects.create(group=Group.objects.get())
    assert client.delete(at).json()["code"] == "in_use"
    Policy.objects.all().delete()
    assert client.delete(at).status_code == 204
    client.force_login(alice)
    assert client.get(path).status_code == client.post(path, {"name": "x"}).status_code == 403


def test_djangos_admin_deletes_and_changes_nobody(alice: User, chief: User) -> None:
    client, path = client_of(chief), f"/admin/auth/user/{chief.pk}/"
    assert client.post(f"/admin/auth/user/{alice.pk}/delete/", {"post": "yes"}).status_code == 403
    assert client.get(f"{path}change/").status_code == 200
    client.post(f"{path}change/", {"username": "renamed", "email": "x@example.org"})
    chief.refresh_from_db()
    assert (chief.is_staff, chief.is_active, chief.username) == (True, True, "administrator")
    assert client.get("/admin/auth/group/").status_code == 404


def test_djangos_admin_makes_members_and_gives_passwords(chief: User) -> None:
    client = client_of(chief)
    secret = {"password1": "quite a secret", "password2": "quite a secret"}
    wish = {"username": "new", "usable_password": "true", **secret}
    client.post("/admin/auth/user/add/", wish)
    made = User.objects.get(username="new")
    changed = {"password1": "another secret", "password2": "another secret"}
    client.post(f"/admin/auth/user/{made.pk}/password/", {"usable_password": "true", **changed})
    made.refresh_from_db()
    assert (made.is_staff, made.check_password("another secret")) == (False, True)


def test_the_number_of_queries_does_not_grow(
    chief: User, django_assert_max_num_queries: Any
) -> None:
    for number in range(60):
        builders.person(f"member-{number}")
    client = client_of(chief)
    # Session, user, groups to choose, count, members, their groups, unread notices.
    with django_assert_max_num_queries(9):
        client.get("/administration/members/")
