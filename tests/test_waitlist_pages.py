"""Waiting through the pages, by REST, and by the link of the mail."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from bookings.models import Booking, Lapse, State, Waiting
from bookings.waitlist_keeping import offer_freed
from lanes import clock
from lanes.models import Lane, Notice
from notices.links import make_link
from notices.models import Link
from notices.telling import tell_bookings
from notices.wording import words_of
from tests import builders
from tests.test_api_bookings import signed_in, with_token
from tests.test_web_bookings import local

pytestmark = pytest.mark.django_db
URL = "/api/v1/waitlist/"


@pytest.fixture
def lane() -> Lane:
    return builders.lane("demo")


@pytest.fixture
def owner() -> User:
    return builders.person("owner")


@pytest.fixture
def client(owner: User) -> Client:
    client = Client()
    client.force_login(owner)
    return client


@pytest.fixture
def taken(lane: Lane) -> Booking:
    start = clock.database_now() - timedelta(minutes=30)
    end = start + timedelta(hours=3)
    return builders.booking(
        lane=lane,
        owner=builders.person("ada"),
        kind="gpu",
        preset=None,
        start=start,
        end=end,
        original_end=end,
    )


def form(**changed: str) -> dict[str, str]:
    return {
        "lane": "demo",
        "what": "gpu",
        "begins": "later",
        "start": local(60),
        "length": "60",
    } | changed


def wish(**changed: Any) -> dict[str, Any]:
    now = clock.database_now()
    times = {"opens": now.isoformat(), "closes": (now + timedelta(hours=4)).isoformat()}
    return {"lanes": ["demo"], "kind": "gpu", "minutes": 60, **times} | changed


def hold_for(owner: User) -> Booking:
    """What is held for the owner, who waited and was first."""
    answer = signed_in(owner).post(URL, wish(), format="json")
    assert answer.status_code == 201, answer.json()
    assert offer_freed(clock.database_now()) == 1
    return Booking.objects.get(state=State.HELD, owner=owner)


def test_a_refusal_offers_to_wait_and_the_list_to_leave(client: Client, taken: Booking) -> None:
    refused = client.post("/book/", form()).content.decode()
    assert "Wait for any time within a day" in refused
    answer = client.post("/waitlist/", form(within="1"), follow=True).content.decode()
    assert "You wait for it" in answer
    waiting = Waiting.objects.get()
    assert waiting.closes - waiting.opens == timedelta(days=1)
    answer = client.post(f"/waitlist/{waiting.pk}/leave/", follow=True).content.decode()
    assert "You wait for it no more" in answer
    assert "You wait for</h2>" not in answer


@pytest.mark.parametrize("changed", [{"within": "9"}, {"lane": "nowhere"}, {"length": ""}])
def test_bad_forms_are_told(client: Client, lane: Lane, changed: dict[str, str]) -> None:
    answer = client.post("/waitlist/", form(within="0") | changed, follow=True)
    assert "Say which lane" in answer.content.decode()
    assert not Waiting.objects.exists()


def test_nobody_elses_waiting_is_left(client: Client, taken: Booking) -> None:
    client.post("/waitlist/", form(within="1"))
    stranger = Client()
    stranger.force_login(builders.person("stranger"))
    pk = Waiting.objects.get().pk
    assert stranger.post(f"/waitlist/{pk}/leave/").status_code == 404


def test_a_hold_is_confirmed_on_the_page(client: Client, lane: Lane, owner: User) -> None:
    hold = hold_for(owner)
    page = client.get("/bookings/").content.decode()
    assert "held until" in page
    client.post(f"/bookings/{hold.pk}/confirm/")
    hold.refresh_from_db()
    assert hold.state == State.CONFIRMED


def test_a_hold_has_a_page_that_confirms_it(client: Client, owner: User, lane: Lane) -> None:
    hold = hold_for(owner)
    url = f"/bookings/{hold.pk}/"
    page = client.get(url).content.decode()
    assert "Held until" in page
    assert f"{url}confirm/" in page
    assert f"{url}end/" not in page  # nobody has it yet
    Booking.objects.filter(pk=hold.pk).update(held_until=clock.database_now())
    page = client.get(url).content.decode()
    assert "It was not confirmed in time" in page
    assert f"{url}confirm/" not in page


def test_its_member_is_told_and_confirms_without_a_log_in(lane: Lane, owner: User) -> None:
    hold = hold_for(owner)
    tell_bookings(clock.database_now())
    notice = Notice.objects.get(kind="offered")
    assert notice.recipient == owner
    assert "demo is held for you" in notice.sentence
    url = f"/once/{make_link(hold, Link.Action.CONFIRM)}/"
    assert "Book what is held for you?" in Client().get(url).content.decode()
    assert "It is booked until" in Client().post(url).content.decode()
    hold.refresh_from_db()
    assert hold.state == State.CONFIRMED
    tell_bookings(clock.database_now())
    assert Notice.objects.filter(kind="confirmed", booking_id_for=hold.pk).exists()


def test_a_released_no_show_is_told_with_its_reason(taken: Booking) -> None:
    assert "nobody sent a request" not in words_of("released", taken).sentence
    taken.lapse = Lapse.NO_SHOW
    assert "as nobody sent a request in time" in words_of("released", taken).sentence


class TestRest:
    """The same by REST."""

    def test_waiting_listing_leaving(self, taken: Booking, owner: User) -> None:
        client = signed_in(owner)
        made = client.post(URL, wish(), format="json").json()
        assert client.get(URL).json()["results"][0]["id"] == made["id"]
        stranger = signed_in(builders.person("stranger"))
        assert stranger.delete(f"{URL}{made['id']}/").status_code == 404
        assert client.delete(f"{URL}{made['id']}/").status_code == 204
        assert client.delete(f"{URL}{made['id']}/").status_code == 404

    def test_confirming(self, lane: Lane, owner: User) -> None:
        hold = hold_for(owner)
        url = f"/api/v1/bookings/{hold.pk}/confirm/"
        assert signed_in(builders.person("stranger")).post(url).status_code == 403
        assert signed_in(owner).post(url).json()["state"] == "confirmed"
        assert signed_in(owner).post(url).status_code == 409

    @pytest.mark.parametrize(
        "changed",
        [
            {"lanes": []},
            {"lanes": ["nowhere"]},
            {"minutes": 0},
            {"minutes": 10**9},
            {"minutes": 600},
            {"opens": "2030-01-01T10:00"},
            {"closes": "1999-01-01T10:00Z"},
            {"kind": "model"},
            {"purpose": "\0"},
            {"colour": "red"},
        ],
    )
    def test_bad_wishes(self, lane: Lane, owner: User, changed: dict[str, Any]) -> None:
        assert signed_in(owner).post(URL, wish(**changed), format="json").status_code == 400

    def test_tokens_stay_on_their_lanes(self, lane: Lane, owner: User) -> None:
        other = with_token(owner, "bookings", lanes=(builders.lane("other"),))
        assert other.post(URL, wish(), format="json").status_code == 403
        assert APIClient().get(URL).status_code == 401
