"""The page of tokens: lifetimes, lanes, and what administrators see."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gateway.models import ApiToken
from lanes import clock
from tests import builders

pytestmark = pytest.mark.django_db


def client_of(user: User) -> Client:
    """A browser that is logged in."""
    client = Client()
    client.force_login(user)
    return client


def make(client: Client, **fields: Any) -> int:
    """Send the form; the answer's status."""
    return client.post(
        "/tokens/", {"name": "laptop", "scopes": ["inference"], **fields}
    ).status_code


def test_a_token_for_some_lanes_and_a_week() -> None:
    builders.lane("main")
    builders.lane("other")
    assert make(client_of(builders.person()), lanes=["main"], lifetime="7") == 200
    token = ApiToken.objects.get()
    assert ([lane.slug for lane in token.lanes.all()], token.is_limited) == (["main"], True)
    assert token.expires_at is not None
    assert abs(token.expires_at - clock.database_now() - timedelta(days=7)) < timedelta(minutes=1)


def test_a_token_without_an_end_and_one_that_ends_at_a_time() -> None:
    client = client_of(builders.person())
    assert make(client, lifetime="never") == 200
    assert make(client, lifetime="time", expires_at="2091-01-01T12:00") == 200
    ends = set(ApiToken.objects.values_list("expires_at__year", flat=True))
    assert ends == {None, 2091}


@pytest.mark.parametrize(
    "wrong",
    [
        {"lifetime": "time"},
        {"lifetime": "time", "expires_at": "2001-01-01T12:00"},
        {"lifetime": "5000"},
        {"lanes": ["no-such"]},
        {"name": " "},
    ],
)
def test_a_form_that_says_nothing_sensible_makes_nothing(wrong: dict[str, Any]) -> None:
    assert make(client_of(builders.person()), **wrong) == 400
    assert not ApiToken.objects.exists()


def test_an_administrator_sees_those_of_one_of_all_and_her_own_first() -> None:
    make(client_of(builders.person("alice")), name="of alice")
    make(client_of(builders.person("bob")), name="of bob")
    chief = client_of(builders.administrator())
    page = {q: chief.get(f"/tokens/{q}").content.decode() for q in ("", "?of=alice", "?of=")}
    assert "of alice" not in page[""]
    assert "of alice" in page["?of=alice"]
    assert "of bob" not in page["?of=alice"]
    assert "of alice" in page["?of="]
    assert "of bob" in page["?of="]


def test_a_member_sees_her_own_whatever_she_asks() -> None:
    make(client_of(builders.person("alice")), name="of alice")
    assert (
        "of alice"
        not in client_of(builders.person("bob")).get("/tokens/?of=alice").content.decode()
    )


def test_the_number_of_queries_does_not_grow() -> None:
    alice = builders.person("alice")
    client = client_of(alice)
    lane = builders.lane("main")

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as found:
            client.get("/tokens/")
        return len(found)

    make(client, lanes=["main"])
    few = queries()
    for number in range(5):
        make(client, lanes=["main"])
        ApiToken.objects.create(
            owner=alice,
            name="slot",
            digest=str(number),
            created_at=clock.database_now(),
            booking=builders.booking(owner=alice, lane=lane, start=builders.at(number * 90)),
        )
    assert queries() == few <= 12


def test_members_see_and_end_their_own_tokens_alone() -> None:
    owner, stranger, boss = (
        client_of(person)
        for person in (
            builders.person(),
            builders.person("stranger"),
            builders.administrator(),
        )
    )
    make(owner)
    token = ApiToken.objects.get()
    address = f"/api/v1/tokens/{token.pk}/"
    listed = [client.get("/api/v1/tokens/").json()["results"] for client in (owner, stranger, boss)]
    assert [len(rows) for rows in listed] == [1, 0, 1]
    assert stranger.delete(address).status_code == 404
    assert stranger.post(f"/tokens/{token.pk}/revoke/").status_code == 404
    token.refresh_from_db()
    assert token.revoked_at is None
    assert owner.delete(address).status_code in {200, 204}
