"""Limits a minute, of tokens and of people: who may set them, and what the edge is told."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import IntegrityError
from django.test import Client
from pytest_django import Settings
from rest_framework.test import APIClient

from gateway import limits, publish, tokens
from gateway.edge.table import TokenEntry, decode_tokens
from gateway.limits import RateLimits
from gateway.models import ApiToken, MemberLimit
from lanes import ticks
from lanes.refusals import Refusal
from tests import builders

pytestmark = pytest.mark.django_db
TOKENS, ME, MEMBERS = "/api/v1/tokens/", "/api/v1/me/", "/api/v1/members/"


def signed_in(user: User) -> APIClient:
    client = APIClient()
    client.force_login(user)
    return client


@pytest.fixture
def owner() -> User:
    return builders.person("owner")


def token(owner: User, requests: int | None = None, used: int | None = None) -> ApiToken:
    made = tokens.create_token(
        owner=owner,
        name="n",
        scopes=["inference"],
        lanes=[],
        expires_at=None,
        rate_limits=RateLimits(requests, used),
    )
    assert not isinstance(made, Refusal)
    return made[0]


def entry(made: ApiToken) -> TokenEntry:
    """What the edge is told of it."""
    parts = publish.encode_facts(builders.NOON).parts
    return decode_tokens(parts["tokens"])[made.digest]


def owner_limits(made: ApiToken) -> tuple[int | None, int | None]:
    told = entry(made)
    return told.owner_requests_per_minute, told.owner_tokens_per_minute


# --- What the edge is told --------------------------------------------------------------------
def test_a_tokens_own_limits_are_in_the_table(owner: User) -> None:
    told = entry(token(owner, 60, 9000))
    assert (told.requests_per_minute, told.tokens_per_minute) == (60, 9000)
    told = entry(token(owner))
    assert (told.requests_per_minute, told.tokens_per_minute) == (None, None)


@pytest.mark.parametrize(
    ("default", "own", "in_force"),
    [
        (0, None, None),
        (30, None, 30),
        (30, 50, 50),
        (30, 10, 10),
        (30, 0, None),  # this person has no limit
        (0, 10, 10),
    ],
)
def test_a_persons_limit_is_their_own_else_everybodys(
    owner: User, settings: Settings, default: int, own: int | None, in_force: int | None
) -> None:
    settings.SLOTSERVE_REQUESTS_PER_MINUTE = settings.SLOTSERVE_TOKENS_PER_MINUTE = default
    MemberLimit.objects.create(member=owner, requests_per_minute=own, tokens_per_minute=own)
    assert owner_limits(token(owner)) == (in_force, in_force)
    assert limits.limits_of(owner) == RateLimits(in_force, in_force)


def test_somebody_without_a_row_is_as_everybody(owner: User, settings: Settings) -> None:
    settings.SLOTSERVE_REQUESTS_PER_MINUTE = 30
    assert owner_limits(token(owner)) == (30, None)


# --- Tokens -----------------------------------------------------------------------------------
@pytest.mark.parametrize("number", [0, -1, 2**31])
def test_a_tokens_limit_is_a_positive_number(owner: User, number: int) -> None:
    wish = RateLimits(tokens_per_minute=number)
    made = tokens.create_token(
        owner=owner, name="n", scopes=["read"], lanes=[], expires_at=None, rate_limits=wish
    )
    assert isinstance(made, Refusal)
    assert made.code == "bad_limit"


def test_the_database_forbids_a_tokens_limit_of_nothing(owner: User) -> None:
    made = token(owner)
    with pytest.raises(IntegrityError, match="gateway_token_limits_positive"):
        ApiToken.objects.filter(pk=made.pk).update(requests_per_minute=0)


@pytest.mark.parametrize(
    ("held", "wish", "is_allowed"),
    [
        (None, 10, True),
        (10, 5, True),
        (10, 10, True),
        (10, 11, False),
        (10, None, False),
    ],
)
def test_owners_may_lower_a_tokens_limits_and_administrators_may_raise_them(
    owner: User, held: int | None, wish: int | None, is_allowed: bool
) -> None:
    made, body = token(owner, held), {"requests_per_minute": wish}
    answer = signed_in(owner).patch(f"{TOKENS}{made.pk}/", body, format="json")
    assert answer.status_code == (200 if is_allowed else 403)
    made.refresh_from_db()
    assert made.requests_per_minute == (wish if is_allowed else held)
    if not is_allowed:
        assert answer.json()["code"] == "not_administrator"
    boss = signed_in(builders.administrator())
    assert boss.patch(f"{TOKENS}{made.pk}/", body, format="json").status_code == 200


def test_what_a_change_leaves_out_stays(owner: User) -> None:
    made = token(owner, 60, 9000)
    answer = signed_in(owner).patch(
        f"{TOKENS}{made.pk}/", {"requests_per_minute": 5}, format="json"
    )
    assert (answer.json()["requests_per_minute"], answer.json()["tokens_per_minute"]) == (5, 9000)


def test_strangers_do_not_see_whose_limits_they_would_change(owner: User) -> None:
    made, stranger = token(owner, 60), builders.person("stranger")
    answer = signed_in(stranger).patch(
        f"{TOKENS}{made.pk}/", {"requests_per_minute": 1}, format="json"
    )
    assert answer.status_code == 404
    refusal = limits.set_token_limits(made, RateLimits(1), actor=stranger)
    assert refusal is not None
    assert refusal.code == "not_yours"


def test_a_token_that_was_changed_meanwhile_is_not_overwritten(owner: User) -> None:
    made = token(owner, 60)
    ApiToken.objects.filter(pk=made.pk).update(requests_per_minute=2)
    refusal = limits.set_token_limits(made, RateLimits(50), actor=owner)
    assert refusal is not None
    assert refusal.code == "wrong_state"


def test_a_token_is_made_with_limits_over_rest(owner: User) -> None:
    wish = {"name": "n", "requests_per_minute": 60, "tokens_per_minute": 9000}
    answer = signed_in(owner).post(TOKENS, wish, format="json")
    assert answer.status_code == 201
    assert (answer.json()["requests_per_minute"], answer.json()["tokens_per_minute"]) == (60, 9000)


@pytest.mark.parametrize("number", [0, -1, 2**31, 1.5, "many", [], True])
def test_a_limit_that_is_none_is_refused_over_rest(owner: User, number: Any) -> None:
    client = signed_in(owner)
    wish = {"name": "n", "requests_per_minute": number}
    assert client.post(TOKENS, wish, format="json").status_code == 400
    answer = client.patch(f"{TOKENS}{token(owner).pk}/", wish, format="json")
    assert answer.json()["code"] == "invalid"


def test_a_token_is_made_with_limits_on_the_page(owner: User, client: Client) -> None:
    client.force_login(owner)
    MemberLimit.objects.create(member=owner, requests_per_minute=77)
    wish = {"name": "laptop", "scopes": ["inference"], "requests_per_minute": "60"}
    page = client.post("/tokens/", wish).content.decode()
    assert "60 requests a minute" in page
    assert "All your tokens together, a minute: 77 requests" in page
    assert ApiToken.objects.get().requests_per_minute == 60


def test_the_page_refuses_a_limit_of_nothing(owner: User, client: Client) -> None:
    client.force_login(owner)
    wish = {"name": "laptop", "scopes": ["inference"], "tokens_per_minute": "0"}
    assert client.post("/tokens/", wish).status_code == 400
    assert not ApiToken.objects.exists()


def test_the_command_sets_limits(owner: User) -> None:
    given = ["--requests-per-minute", "60", "--tokens-per-minute", "9000"]
    call_command("create_token", "owner", *given, skip_checks=True)
    made = ApiToken.objects.get()
    assert (made.requests_per_minute, made.tokens_per_minute) == (60, 9000)
    with pytest.raises(CommandError, match="whole number from 1"):
        call_command("create_token", "owner", "--tokens-per-minute", "0", skip_checks=True)


# --- People -----------------------------------------------------------------------------------
def test_administrators_set_a_members_limits_and_the_member_sees_them(
    owner: User, settings: Settings
) -> None:
    settings.SLOTSERVE_TOKENS_PER_MINUTE = 500
    boss, url = signed_in(builders.administrator()), f"{MEMBERS}{owner.pk}/limits/"
    answer = boss.put(url, {"requests_per_minute": 60}, format="json")
    assert answer.json() == {"requests_per_minute": 60, "tokens_per_minute": None}
    assert boss.get(url).json() == answer.json()
    in_force = {"requests_per_minute": 60, "tokens_per_minute": 500}
    assert signed_in(owner).get(ME).json()["limits"] == in_force
    listed = boss.get(MEMBERS).json()["results"]
    assert [each["limits"] for each in listed if each["id"] == owner.pk] == [in_force]


@pytest.mark.parametrize("path", ["", "{}/", "{}/limits/"])
def test_members_do_not_see_who_else_there_is(owner: User, path: str) -> None:
    answer = signed_in(owner).get(MEMBERS + path.format(owner.pk))
    assert (answer.status_code, answer.json()["code"]) == (403, "not_administrator")


def test_members_do_not_set_their_own_limits(owner: User) -> None:
    url = f"{MEMBERS}{owner.pk}/limits/"
    assert signed_in(owner).put(url, {"requests_per_minute": 0}, format="json").status_code == 403
    made = limits.set_member_limits(owner, RateLimits(0, 0), actor=owner)
    assert isinstance(made, Refusal)
    assert not MemberLimit.objects.exists()


@pytest.mark.parametrize("number", [-1, 2**31, "x", 0.5])
def test_a_members_limit_that_is_none_is_refused(owner: User, number: Any) -> None:
    boss = signed_in(builders.administrator())
    wish = {"requests_per_minute": number}
    answer = boss.put(f"{MEMBERS}{owner.pk}/limits/", wish, format="json")
    assert answer.status_code == 400
    made = limits.set_member_limits(owner, RateLimits(-1), actor=builders.administrator())
    assert isinstance(made, Refusal)


def test_limits_reach_the_edges_at_once(
    owner: User, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    asked: list[None] = []
    monkeypatch.setattr(ticks, "request_plan", lambda: asked.append(None))
    with django_capture_on_commit_callbacks(execute=True):
        made = token(owner)
        limits.set_token_limits(made, RateLimits(5), actor=owner)
        limits.set_member_limits(owner, RateLimits(5), actor=builders.administrator())
    assert len(asked) == 3


# --- Django's admin ---------------------------------------------------------------------------
def test_administrators_set_and_clear_limits_in_the_admin_pages(
    owner: User, client: Client
) -> None:
    client.force_login(builders.administrator())
    page = "/admin/gateway/memberlimit/"
    client.post(f"{page}add/", {"member": owner.pk, "requests_per_minute": "60"})
    row = MemberLimit.objects.get(member=owner)
    assert (row.requests_per_minute, row.tokens_per_minute) == (60, None)
    client.post(f"{page}{row.pk}/change/", {"tokens_per_minute": "0"})
    row.refresh_from_db()
    assert (row.requests_per_minute, row.tokens_per_minute) == (None, 0)
    assert client.get(page).status_code == 200
    client.post(f"{page}{row.pk}/delete/", {"post": "yes"})
    assert not MemberLimit.objects.exists()
