"""The playground's page and its tokens: short-lived, of one session, in nobody's list."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from bookings.models import Booking, BookingShare
from gateway.browser_tokens import LIFETIME, MOST_LIVING, make_browser_token
from gateway.edge.cors import SETTING, own_origins, read_origins
from gateway.models import ApiToken
from gateway.tokens import digest, find
from lanes import clock
from lanes.refusals import Refusal
from tests import browser_pages as pages
from tests import builders
from tests.builders import at
from tests.conftest import Moment

db = pytest.mark.django_db


def window(user: User) -> Client:
    """Somebody's browser."""
    client = Client()
    client.force_login(user)
    return client


def minted(client: Client) -> str:
    """A token that its page was given."""
    answer = client.post("/playground/token/")
    assert (answer.status_code, answer["Cache-Control"].count("no-store")) == (200, 1)
    told = answer.json()
    assert told["seconds"] == LIFETIME.total_seconds()
    return str(told["token"])


@db
def test_a_page_is_given_a_token_that_calls_models_and_nothing_else() -> None:
    text = minted(window(builders.person("alice")))
    token = find(text, clock.database_now())
    assert token is not None
    assert (token.scopes, token.owner.username) == (["inference"], "alice")
    bearer = {"Authorization": f"Bearer {text}"}
    assert Client().get("/api/v1/lanes/", headers=bearer).status_code == 403
    assert Client().post("/api/v1/tokens/", headers=bearer).status_code == 403


@db
def test_its_tokens_are_in_no_list_and_cannot_be_revoked_by_number() -> None:
    alice = window(builders.person("alice"))
    minted(alice)
    token = ApiToken.objects.get()
    assert alice.get("/api/v1/tokens/").json()["count"] == 0
    assert b"No tokens yet" in alice.get("/tokens/").content
    assert alice.post(f"/tokens/{token.pk}/revoke/").status_code == 404
    boss = window(builders.administrator())
    assert boss.get(f"/api/v1/tokens/{token.pk}/").status_code == 404


@db
@pytest.mark.parametrize("path", ["/accounts/logout/", "/admin/logout/"])
def test_logging_out_ends_the_tokens_of_this_session_alone(path: str) -> None:
    alice = builders.person("alice")
    here, there = window(alice), window(alice)
    texts = [minted(here), minted(here), minted(there)]
    here.post(path)
    now = clock.database_now()
    assert [find(text, now) is not None for text in texts] == [False, False, True]


@db
def test_a_token_is_over_after_a_quarter_of_an_hour_and_deleted_by_the_next(
    moment: Moment,
) -> None:
    alice = builders.person("alice")
    made = make_browser_token(alice, "key")
    assert not isinstance(made, Refusal)
    assert find(made[0], at(14.9)) is not None
    assert find(made[0], at(15)) is None
    moment.set(16)
    make_browser_token(alice, "other key")
    assert [token.session for token in ApiToken.objects.all()] == [digest("other key")]


@db
def test_a_session_has_at_most_so_many() -> None:
    alice = builders.person("alice")
    for _ in range(MOST_LIVING + 2):
        make_browser_token(alice, "key")
    assert ApiToken.objects.count() == MOST_LIVING


@db
def test_who_may_not_log_in_gets_none() -> None:
    made = make_browser_token(builders.person("gone", is_active=False), "key")
    assert isinstance(made, Refusal)
    assert ApiToken.objects.count() == 0


@db
def test_strangers_are_led_to_log_in() -> None:
    for answer in (Client().get("/playground/"), Client().post("/playground/token/")):
        assert answer.status_code == 302
        assert answer["Location"].startswith("/accounts/login/")
    assert window(builders.person()).get("/playground/token/").status_code == 405


@db
def test_the_page_may_call_the_gateway_and_nobody_else(
    settings: Settings, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    settings.SLOTSERVE_GATEWAY_URL = "https://api.gpu.example.org:8443/base/"
    builders.lane("demo")
    alice = window(builders.person("alice"))
    alice.get("/playground/")
    # Session, user, now, slots of hers, lanes, unread notices, announcements.
    with django_assert_num_queries(7):
        answer = alice.get("/playground/")
    policy = dict(
        part.strip().split(" ", 1) for part in answer["Content-Security-Policy"].split(";")
    )
    assert policy["connect-src"] == "'self' https://api.gpu.example.org:8443"
    assert "unsafe" not in answer["Content-Security-Policy"]
    assert 'data-gateway="https://api.gpu.example.org:8443/base"' in answer.content.decode()
    assert "api.gpu" not in alice.get("/bookings/")["Content-Security-Policy"]


@db
def test_it_begins_with_the_viewers_own_slot_then_with_what_runs() -> None:
    alice = builders.person("alice")
    preset = builders.preset("small")
    builders.lane("a")
    runs, mine = builders.lane("b"), builders.lane("c")
    builders.lane("off", enabled=False)
    pages.order(runs, preset)
    assert window(alice).get("/playground/").context["chosen"] == "b"
    now = timezone.now()
    builders.booking(lane=mine, owner=alice, start=now - timedelta(minutes=1))
    found = window(alice).get("/playground/?beside=a&lane=nothing").context
    assert (found["chosen"], found["beside"]) == ("c", "a")
    assert [lane.slug for lane in found["lanes"]] == ["a", "b", "c"]
    assert window(alice).get("/playground/?lane=a").context["chosen"] == "a"
    guest = builders.person("guest")
    assert window(guest).get("/playground/").context["chosen"] == "b"
    slot = Booking.objects.get(lane=mine)
    BookingShare.objects.create(booking=slot, member=guest, added_at=now)
    assert window(guest).get("/playground/").context["chosen"] == "c"


@db
def test_without_lanes_it_says_so() -> None:
    assert b"No lane to chat with" in window(builders.person()).get("/playground/").content


@pytest.mark.parametrize(
    ("pages_at", "origins"),
    [
        ("", ()),
        ("https://GPU.example.org/", ("https://gpu.example.org",)),
        ("https://gpu.example.org:443", ("https://gpu.example.org",)),
        ("http://gpu.lan:8000/slots", ("http://gpu.lan:8000",)),
        (
            "http://127.0.0.1:8000",
            ("http://127.0.0.1:8000", "http://localhost:8000", "http://[::1]:8000"),
        ),
        ("http://[::1]", ("http://127.0.0.1", "http://localhost", "http://[::1]")),
    ],
)
def test_the_gateway_lets_our_own_pages_in(
    pages_at: str, origins: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own_origins(pages_at) == origins
    monkeypatch.setenv("SLOTSERVE_WEB_URL", pages_at)
    assert read_origins() == origins
    monkeypatch.setenv(SETTING, "https://chat.example.org")
    assert read_origins() == ("https://chat.example.org", *origins)
    monkeypatch.setenv(SETTING, "*")
    assert read_origins() == ("*",)
