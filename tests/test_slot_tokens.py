"""Tokens for one booking: made, published, and refused outside of their lane and times."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from django.test import Client
from rest_framework.test import APIClient

from bookings import services
from bookings.models import Booking, State
from bookings.states import Kind
from gateway import publish, tokens
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routing import Asked, Caller, Route, choose
from gateway.edge.table import SlotToken, decode_slot_tokens, decode_tokens, encode_part
from gateway.models import ApiToken, Scope
from gateway.slot_tokens import make_slot_token
from lanes import clock
from lanes.refusals import Refusal
from tests import builders
from tests.edge_harness import OWNER, grant, lane, table

KEY = Caller("digest")
SLOT = SlotToken(9, OWNER, ("inference",), ("main",), expires_at=3600.0, starts_at=100.0)


def asked(now: float, *, to: str | None = None, **changes: Any) -> Route | EdgeRefusal:
    """What becomes of a request with a slot's token; its booking is on the lane main."""
    main = lane("main", grants=(grant(OWNER, 100.0, 3600.0),))
    lanes = table(
        main, lane("other"), confirmed_at=now, tokens={"digest": replace(SLOT, **changes)}
    )
    return choose(lanes, KEY, Asked(lane=to), now)


# --- At the edge, pure ------------------------------------------------------------------------


@pytest.mark.parametrize("now", [100.0, 3599.9])
def test_within_the_slot_it_reaches_the_lane(now: float) -> None:
    route = asked(now)
    assert isinstance(route, Route)
    assert (route.lane.slug, route.until) == ("main", 3600.0)


@pytest.mark.parametrize(("now", "words"), [(99.9, "begins at"), (3600.0, "expired at")])
def test_outside_of_the_slot_it_is_refused(now: float, words: str) -> None:
    refusal = asked(now)
    assert isinstance(refusal, EdgeRefusal)
    assert (refusal.code, words in refusal.words) == ("invalid_api_key", True)


def test_another_lane_is_not_there_for_it() -> None:
    refusal = asked(200.0, to="other")
    assert isinstance(refusal, EdgeRefusal)
    assert refusal.code == "lane_not_found"


def test_one_that_names_no_lane_or_end_opens_nothing() -> None:
    whole = {"token_id": 1, "owner_id": 1, "scopes": ["inference"], "starts_at": 0.0}
    lacks: list[dict[str, Any]] = [{"lanes": []}, {"lanes": ["main"], "expires_at": None}]
    for lacking in lacks:
        payload = encode_part({"digest": {**whole, **lacking}})
        assert decode_slot_tokens(payload) == {}


# --- Made and published -----------------------------------------------------------------------


@pytest.fixture
def alice() -> User:
    """The owner of the booking."""
    return builders.person("alice")


@pytest.fixture
def booking(alice: User) -> Booking:
    """alice's hour, which began a minute ago."""
    start = clock.database_now() - timedelta(minutes=1)
    return builders.booking(owner=alice, lane=builders.lane("main"), start=start)


def made(booking: Booking) -> ApiToken:
    """A token of it."""
    token = make_slot_token(booking, actor=booking.owner)
    assert not isinstance(token, Refusal)
    return token[0]


def published() -> dict[str, Any]:
    """The slots' tokens of the table; no release before this one may find them among the others."""
    parts = publish.encode_facts(clock.database_now()).parts
    assert decode_tokens(parts["tokens"]) == {}
    return dict(decode_slot_tokens(parts["slot-tokens"]))


@pytest.mark.django_db
def test_the_table_has_the_bookings_lane_and_times(booking: Booking) -> None:
    token = made(booking)
    (entry,) = published().values()
    assert (entry.token_id, entry.scopes, entry.lanes) == (token.pk, ("inference",), ("main",))
    times = (booking.start.timestamp(), booking.end.timestamp())
    assert (entry.starts_at, entry.expires_at) == times
    assert token.is_limited  # a publisher of the release before gives it to nobody


@pytest.mark.django_db
def test_it_follows_an_extension_a_release_and_a_restore_of_its_booking(booking: Booking) -> None:
    made(booking)
    later = booking.end + timedelta(hours=1)
    assert isinstance(services.extend(booking, actor=booking.owner, end=later), Booking)
    assert [each.expires_at for each in published().values()] == [later.timestamp()]
    services.release(booking, actor=booking.owner)
    assert published() == {}


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change",
    [{"state": State.CANCELLED}, {"state": State.PENDING}, {"end": F("start")}],
    ids=["cancelled", "pending", "over"],
)
def test_without_a_confirmed_booking_it_is_nothing(
    booking: Booking, change: dict[str, Any]
) -> None:
    made(booking)
    assert len(published()) == 1
    if "end" in change:
        Booking.objects.update(start=F("start") - timedelta(hours=3))
        change = {"end": F("start") + timedelta(hours=1)}
    Booking.objects.update(**change)
    assert published() == {}


@pytest.mark.django_db
def test_it_does_not_serve_who_gave_the_booking_away(booking: Booking) -> None:
    made(booking)
    Booking.objects.update(owner=builders.person("bob"))
    assert published() == {}


@pytest.mark.django_db
def test_only_its_owner_gets_one_and_only_of_a_model_slot_to_come(booking: Booking) -> None:
    def code(actor: User, **changes: Any) -> str:
        for name, value in changes.items():
            setattr(booking, name, value)
        answer = make_slot_token(booking, actor=actor)
        return answer.code if isinstance(answer, Refusal) else "made"

    assert code(booking.owner) == "made"
    assert code(builders.administrator()) == "not_yours"
    assert code(booking.owner, state=State.PENDING) == "wrong_state"
    assert code(booking.owner, state=State.CONFIRMED, kind=Kind.GPU) == "wrong_kind"
    assert code(booking.owner, kind=Kind.MODEL, end=booking.start) == "too_late"


@pytest.mark.django_db
def test_rest_makes_one_with_the_scope_admin_alone(booking: Booking) -> None:
    path = f"/api/v1/bookings/{booking.pk}/token/"
    session = APIClient()
    session.force_login(booking.owner)
    answer = session.post(path)
    assert (answer.status_code, answer.json()["booking"]) == (201, booking.pk)
    own = APIClient(HTTP_AUTHORIZATION=f"Bearer {answer.json()['token']}")
    assert own.post(path).status_code == 403
    scope = tokens.create_token(
        owner=booking.owner, name="n", scopes=[Scope.BOOKINGS], lanes=[], expires_at=None
    )
    assert not isinstance(scope, Refusal)
    assert APIClient(HTTP_AUTHORIZATION=f"Bearer {scope[1]}").post(path).status_code == 403
    stranger = APIClient()
    stranger.force_login(builders.person("stranger"))
    assert stranger.post(path).status_code in (403, 404)


@pytest.mark.django_db
def test_the_page_shows_it_once_with_what_to_paste(booking: Booking, client: Client) -> None:
    client.force_login(booking.owner)
    assert f"/bookings/{booking.pk}/token/" in client.get("/bookings/").content.decode()
    page = client.post(f"/bookings/{booking.pk}/token/").content.decode()
    assert "this slot alone" in page
    assert "ANTHROPIC_AUTH_TOKEN=ss_" in page
    assert "for the slot on main" in client.get("/tokens/").content.decode()


@pytest.mark.django_db
def test_the_page_says_why_there_is_none(booking: Booking, client: Client) -> None:
    Booking.objects.update(state=State.PENDING)
    client.force_login(booking.owner)
    answer = client.post(f"/bookings/{booking.pk}/token/", follow=True)
    assert "is not confirmed" in answer.content.decode()
    assert not ApiToken.objects.exists()
