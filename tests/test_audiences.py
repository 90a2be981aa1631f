"""Each address has an audience, and nobody else gets in: every role, method and kind of token."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import models
from django.test import Client
from django.urls import reverse

from bookings.models import Booking, BookingShare, Waiting
from gateway.models import ApiToken, Scope
from gateway.tokens import create_token
from lanes.refusals import Refusal
from tests import audiences, builders, every_page
from tests.audiences import ADMINISTRATORS, EVERYBODY, MEMBERS, REST, Call, address
from tests.every_page import ADMINISTRATOR, HOST, MEMBER, NO_PAGES, NOBODY, Site

pytestmark = pytest.mark.django_db
LOGIN = "/accounts/login/"
# What is sent there changes nothing of anybody's, or has a proof of its own in the address.
WITHOUT_CSRF = {"once"}


@pytest.fixture
def site() -> Site:
    return every_page.made()


# --- The tables -----------------------------------------------------------------------------------
def test_each_page_has_one_audience() -> None:
    tables = (EVERYBODY, MEMBERS, ADMINISTRATORS)
    assert every_page.url_names() - {"api-docs"} == set().union(*tables)
    assert sum(map(len, tables)) == len(set().union(*tables))


def test_no_page_has_the_name_of_a_route_of_rest() -> None:
    """Links of pages would lead there."""
    assert (every_page.url_names() - {"api-docs"}) & set(REST) == set()


def test_each_method_of_rest_has_one_audience() -> None:
    found = {str(route.name): audiences.methods_of(route) for route in audiences.routes()}
    assert found == {name: {m.split(":")[0] for m in said.split()} for name, said in REST.items()}


# --- Pages ----------------------------------------------------------------------------------------
def test_visitors_are_led_to_log_in(site: Site) -> None:
    let_in = []
    for name in sorted(MEMBERS | ADMINISTRATORS):
        for method in ("get", "post"):
            answer = getattr(Client(headers=HOST), method)(address(site, name))
            if answer.status_code != 302 or not answer["Location"].startswith(LOGIN):
                let_in.append((method, name, answer.status_code))
    assert let_in == []


@pytest.mark.parametrize("method", ["get", "post", "put", "delete"])
def test_members_do_not_get_to_what_is_for_administrators(site: Site, method: str) -> None:
    client = site.clients[MEMBER]
    answers = {
        name: getattr(client, method)(address(site, name)).status_code for name in ADMINISTRATORS
    }
    assert {name: code for name, code in answers.items() if code != 403} == {}


def test_administrators_get_there(site: Site) -> None:
    client = site.clients[ADMINISTRATOR]
    answers = {name: client.get(address(site, name)).status_code for name in ADMINISTRATORS}
    assert {name: code for name, code in answers.items() if code in {401, 403}} == {}


def test_members_get_to_what_is_for_them(site: Site) -> None:
    client, refused = site.clients[MEMBER], {}
    for name in sorted(MEMBERS):
        answer = client.get(address(site, name))
        is_led_away = answer.status_code == 302 and answer["Location"].startswith(LOGIN)
        if is_led_away or answer.status_code in {401, 403}:
            refused[name] = answer.status_code
    assert refused == {}


def test_what_is_done_is_never_done_by_a_link(site: Site) -> None:
    client = site.clients[ADMINISTRATOR]
    names = NO_PAGES["only what is sent there does something"].split()
    answers = {name: client.get(address(site, name)).status_code for name in names}
    # Addresses of refusals, which may be reloaded and lead back to their pages; Django's own.
    redirected = {"choose", "change-maintenance", "lane-default", "rename-group", "set_language"}
    assert {name: code for name, code in answers.items() if code != 405} == dict.fromkeys(
        redirected, 302
    )


def test_nothing_is_done_without_its_csrf_token(site: Site) -> None:
    client = Client(enforce_csrf_checks=True, headers=HOST)
    client.force_login(site.company.administrator)
    names = every_page.url_names() - WITHOUT_CSRF - {"api-docs"}
    answers = {name: client.post(address(site, name)).status_code for name in names}
    assert {name: code for name, code in answers.items() if code != 403} == {}


THEIRS = (
    *("move-booking", "booking", "booking-end", "booking-load", "booking-share"),
    *("booking-unshare", "give-booking", "booking-series-release", "extend", "slot-token"),
)


def test_another_member_can_do_nothing_with_a_booking(site: Site) -> None:
    stranger = _stranger()
    client = Client(headers=HOST)
    client.force_login(stranger)
    before = _kept()
    paths = [address(site, name) for name in THEIRS]
    pk = site.parts["booking"]
    changes = ("release", "cancel", "approve", "reject", "confirm")
    paths += [reverse("change", kwargs={"pk": pk, "name": name}) for name in changes]
    said = {
        "member": stranger.username,
        "what": "gpu",
        "end": "2099-01-01T00:00:00Z",
        "span": "all",
    }
    for path in paths:
        assert client.post(path, said).status_code in {302, 403, 404, 405}, path
    assert _kept() == before


def test_another_member_reads_nothing_that_is_for_its_owner(site: Site) -> None:
    client = Client(headers=HOST)
    client.force_login(_stranger())
    Booking.objects.filter(pk=str(site.parts["booking"])).update(purpose="secret-purpose")
    for name in (*THEIRS, "calendar-file"):
        answer = client.get(address(site, name))
        assert answer.status_code in {403, 404, 405}, name
    for name in ("calendar", "overview", "bookings", "lane", "calendar-booking", "usage"):
        assert b"secret-purpose" not in client.get(address(site, name)).content, name


def _stranger() -> User:
    return builders.person("stranger")


def _kept() -> list[Any]:
    kept: list[type[models.Model]] = [Booking, BookingShare, ApiToken, Waiting]
    return [list(each._default_manager.order_by("pk").values()) for each in kept]


# --- REST -----------------------------------------------------------------------------------------
CALLS = audiences.calls()
# Of these the service says whether it is for administrators: that depends on the booking.
BY_SERVICE = {"booking-approve", "booking-reject", "lane-retry"}


def answer_to(site: Site, client: Client, call: Call, **extra: Any) -> Any:
    path = address(site, call.name)
    return client.generic(call.method.upper(), path, "{}", "application/json", **extra)


def test_rest_tells_visitors_nothing(site: Site) -> None:
    client = site.clients[NOBODY]
    for call in CALLS:
        answer = answer_to(site, client, call)
        if call.audience == "everybody":
            assert answer.status_code in {200, 400}, call
        else:
            assert answer.status_code == 401, call


def test_rest_lets_members_do_nothing_that_is_for_administrators(site: Site) -> None:
    for call in CALLS:
        answer = answer_to(site, site.clients[MEMBER], call)
        if call.audience == "staff":
            assert (answer.status_code, answer.json()["code"]) == (403, "not_administrator"), call
        else:
            assert answer.status_code != 401, call
            is_refused = "not_administrator" in str(answer.content)
            assert not is_refused or call.name in BY_SERVICE, call


def token_of(person: User, *scopes: str) -> dict[str, str]:
    made = create_token(owner=person, name="t", scopes=list(scopes), lanes=[], expires_at=None)
    assert not isinstance(made, Refusal), made
    return {"HTTP_AUTHORIZATION": f"Bearer {made[1]}"}


OPENS = {  # which scope opens what, beside admin
    "read": Scope.READ,
    "bookings": Scope.BOOKINGS,
}


@pytest.mark.parametrize("scope", [Scope.INFERENCE, Scope.READ, Scope.BOOKINGS, Scope.ADMIN])
def test_a_token_does_what_its_scope_says_and_no_more(site: Site, scope: str) -> None:
    token = token_of(builders.person("other"), scope)
    for call in CALLS:
        if call.audience == "everybody":
            continue
        answer = answer_to(site, Client(headers=HOST), call, **token)
        may = call.audience != "staff" and scope in {OPENS.get(call.audience), Scope.ADMIN}
        code = answer.json().get("code", "") if answer.status_code == 403 else ""
        if may:  # what a service says of a booking of somebody else's is another matter
            is_let_in = code not in {"permission_denied", "not_administrator"}
            assert is_let_in or call.name in BY_SERVICE, call
        else:
            assert code in {"permission_denied", "not_administrator"}, call


@pytest.mark.parametrize("scope", [Scope.INFERENCE, Scope.READ, Scope.BOOKINGS])
def test_an_administrators_token_without_the_scope_changes_nothing(site: Site, scope: str) -> None:
    token = token_of(site.company.administrator, scope)
    hosts = {"host-list", "host-detail", "host-join-tokens", "lane-log", "lane-runs"}  # scope read
    for call in CALLS:
        is_reading = call.method == "get" and call.name in hosts and scope == Scope.READ
        if call.audience not in {"staff", "admin"} or is_reading:
            continue
        assert answer_to(site, Client(headers=HOST), call, **token).status_code == 403, call
