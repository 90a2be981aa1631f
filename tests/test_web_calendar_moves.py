"""Moving bookings from the calendar: by dragging, and by a plain form."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client

from bookings.models import Booking, Policy, State
from lanes.models import Lane
from slotserve.calendar.telling import exact
from tests import builders
from tests.booking_cast import booked, times
from tests.builders import at
from tests.conftest import Moment
from tests.test_web_bookings import signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def lane(moment: Moment) -> Lane:
    return builders.lane("demo")


@pytest.fixture
def booking(lane: Lane) -> Booking:
    """From 13:00 to 14:00 UTC, the owner's."""
    return booked(lane)


@pytest.fixture
def owner(booking: Booking) -> Client:
    return in_zone(signed_in(booking.owner), "UTC")


def in_zone(client: Client, zone: str) -> Client:
    client.cookies["zone"] = zone
    return client


def seen(booking: Booking) -> dict[str, str]:
    booking.refresh_from_db()
    moments = {"start": booking.start.isoformat(), "end": booking.end.isoformat()}
    return {**moments, "lane": booking.lane.slug}


def drag(client: Client, booking: Booking, /, **wish: Any) -> tuple[int, dict[str, Any]]:
    move = {"booking": str(booking.pk), "seen": seen(booking), "lane": booking.lane.slug} | wish
    answer = client.post("/calendar/move/", move, content_type="application/json")
    said: dict[str, Any] = answer.json()
    return answer.status_code, said


def test_a_dragged_booking_keeps_its_length(owner: Client, booking: Booking) -> None:
    status, said = drag(owner, booking, start="2030-01-15T15:30:00")
    assert status == 200
    assert times(booking) == (at(210), at(270))
    assert said["words"] == "demo, 15 Jan 15:30 \u2013 16:30"


def test_who_moves_what_must_be_approved_again_is_told_so(owner: Client, booking: Booking) -> None:
    Policy.objects.create(approval="always")
    _, said = drag(owner, booking, start="2030-01-15T15:30:00", is_sure=True)
    waits = "It waits for an administrator&#x27;s approval."
    assert said["words"] == f"demo, 15 Jan 15:30 \u2013 16:30. {unescape(waits)}"
    Booking.objects.update(state=State.CONFIRMED, confirmed_at=at(0))
    later = form(booking, start="2030-01-15T17:00", end="2030-01-15T18:00")
    load = {"what": builders.preset("smol").slug}
    for address, wish in (
        (f"/calendar/bookings/{booking.pk}/move/", later),
        (f"/bookings/{booking.pk}/load/", load),
    ):
        Booking.objects.update(state=State.CONFIRMED, confirmed_at=at(0))
        asked = owner.post(address, wish).content.decode()
        (name, value) = re.findall(r'name="(is_sure|sure)" value="([^"]+)"', asked)[0]
        assert Booking.objects.get().state == State.CONFIRMED
        again = wish | {name: value}
        assert waits in owner.post(address, again, follow=True).content.decode()
        assert Booking.objects.get().state == State.PENDING


@pytest.mark.parametrize(
    ("zone", "wish", "answer"),
    [
        ("UTC", {"start": "2030-01-15T17:00", "end": "2030-01-15T18:00"}, "take"),
        ("Europe/Berlin", {"start": "2030-10-27T02:30", "end": "2030-10-27T04:30"}, "which_start"),
    ],
)
def test_what_is_meant_is_asked_once_and_then_carried_out(
    owner: Client, booking: Booking, zone: str, wish: dict[str, str], answer: str
) -> None:
    in_zone(owner, zone)
    Policy.objects.create(approval="always")
    booked(booking.lane, start=at(300), end=at(360), owner=builders.person("other"))
    address, said = f"/calendar/bookings/{booking.pk}/move/", form(booking, **wish)
    page = owner.post(address, said).content.decode()
    assert 'name="sure"' not in page  # first what can be
    value = re.findall(rf'name="{answer}" value="([^"]+)"', page)[0]
    page = owner.post(address, said | {answer: value}).content.decode()
    (sure,) = re.findall(r'name="sure" value="([^"]+)"', page)
    fields = page.partition('<form class="card"')[2]
    assert '<button class="visually-hidden"' in fields.partition("<input name=")[0]  # for Enter
    assert owner.post(address, said | {"sure": sure}).status_code == 302
    moved = Booking.objects.get(pk=booking.pk)
    assert moved.state == State.PENDING
    assert sure == f"{exact(moved.start)}/{exact(moved.end)}"


def test_who_drags_what_must_be_approved_again_is_asked_first(
    owner: Client, booking: Booking
) -> None:
    Policy.objects.create(approval="always")
    status, said = drag(owner, booking, start="2030-01-15T15:30:00")
    assert (status, said["code"], said["field"]) == (409, "asks_again", "is_sure")
    assert [choice["at"] for choice in said["choices"]] == [True]
    assert times(booking) == (at(60), at(120))
    booked(booking.lane, start=at(300), end=at(360), owner=builders.person("other"))
    _, taken = drag(owner, booking, start="2030-01-15T17:00:00")
    assert taken["code"] == "slot_taken"  # what cannot be is not asked about
    assert drag(owner, booking, end="2030-01-15T13:45:00")[0] == 200  # shorter: nobody need know
    booking.refresh_from_db()
    assert booking.state == State.CONFIRMED
    assert drag(owner, booking, start="2030-01-15T15:30:00", is_sure=True)[0] == 200
    booking.refresh_from_db()
    assert booking.state == State.PENDING
    assert drag(owner, booking, start="2030-01-15T14:30:00")[0] == 200  # it waits already


def test_a_move_is_undone_by_the_way_it_came(owner: Client, booking: Booking) -> None:
    before = seen(booking)
    _, said = drag(owner, booking, start="2030-01-15T15:30:00")
    status, _ = drag(owner, booking, **(before | {"seen": said["seen"]}))
    assert status == 200
    assert times(booking) == (at(60), at(120))


def test_an_edge_is_dragged_alone(owner: Client, booking: Booking) -> None:
    drag(owner, booking, end="2030-01-15T14:15:00")
    assert times(booking) == (at(60), at(135))
    drag(owner, booking, start="2030-01-15T12:30:00", end=seen(booking)["end"])
    assert times(booking) == (at(30), at(135))


def test_a_booking_goes_to_another_lane(owner: Client, booking: Booking) -> None:
    builders.lane("other")
    assert drag(owner, booking, lane="other")[0] == 200
    booking.refresh_from_db()
    assert booking.lane.slug == "other"


def test_a_taken_slot_is_refused_with_the_nearest(
    owner: Client, booking: Booking, lane: Lane
) -> None:
    booked(lane, builders.person("other"), start=at(240), end=at(300))
    status, said = drag(owner, booking, start="2030-01-15T16:30:00")
    assert (status, said["code"]) == (409, "slot_taken")
    assert times(booking) == (at(60), at(120))
    slots = {slot["words"]: slot for slot in said["nearest"]}
    slot = slots["15 Jan 17:00 \u2013 18:00"]
    assert drag(owner, booking, start=slot["start"], end=slot["end"])[0] == 200


def test_what_changed_meanwhile_is_not_moved(owner: Client, booking: Booking) -> None:
    old = seen(booking)
    drag(owner, booking, start="2030-01-15T15:30:00")
    status, said = drag(owner, booking, seen=old, start="2030-01-15T18:00:00")
    assert (status, said["code"]) == (409, "changed")
    assert times(booking) == (at(210), at(270))


def test_nobody_moves_what_is_anothers_but_administrators(booking: Booking) -> None:
    stranger = in_zone(signed_in(builders.person("stranger")), "UTC")
    assert drag(stranger, booking, start="2030-01-15T15:30:00")[0] == 403
    staff = in_zone(signed_in(builders.administrator()), "UTC")
    assert drag(staff, booking, start="2030-01-15T15:30:00")[0] == 200
    assert times(booking) == (at(210), at(270))


@pytest.mark.parametrize(
    "wish",
    [
        {"booking": None},
        {"booking": "x"},
        {"booking": "9" * 30},
        {"seen": None},
        {"seen": {"start": "x", "end": "y", "lane": "demo"}},
        {"seen": {"start": "2030-01-15T13:00", "end": "2030-01-15T14:00", "lane": "demo"}},
        {"lane": "nowhere"},
        {"lane": {}},
        {"start": "soon"},
        {"start": ["2030"]},
        {"end": "2030-99-99T00:00"},
    ],
)
def test_a_move_that_cannot_be_read_is_refused(
    owner: Client, booking: Booking, wish: dict[str, Any]
) -> None:
    status, said = drag(owner, booking, **wish)
    assert (status, said["code"]) == (400, "unreadable")


@pytest.mark.parametrize("body", ["", "{", "[]", "null", "[" * 100_000])
def test_a_body_that_is_no_move_is_refused(owner: Client, body: str) -> None:
    answer = owner.post("/calendar/move/", body, content_type="application/json")
    assert answer.status_code == 400


def test_a_move_needs_the_pages_token(booking: Booking) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(booking.owner)
    move = {"booking": booking.pk, "seen": seen(booking), "lane": "demo", "end": "2030-01-15T15:00"}
    assert client.post("/calendar/move/", move, content_type="application/json").status_code == 403
    assert times(booking) == (at(60), at(120))


NIGHTS = [
    ("Europe/Berlin", "2030-10-27T02:30:00", ["02:30 CEST (00:30 UTC)", "02:30 CET (01:30 UTC)"]),
    ("Europe/Berlin", "2030-03-31T02:30:00", ["01:30 CET (00:30 UTC)", "03:30 CEST (01:30 UTC)"]),
    ("America/New_York", "2030-11-03T01:30:00", ["01:30 EDT (05:30 UTC)", "01:30 EST (06:30 UTC)"]),
    (
        "Australia/Lord_Howe",
        "2030-10-06T02:15:00",
        ["01:45 +1030 (15:15 UTC)", "02:45 +11 (15:45 UTC)"],
    ),
]


@pytest.mark.parametrize(("zone", "wall", "words"), NIGHTS)
def test_a_time_that_comes_twice_or_never_is_asked(
    owner: Client, booking: Booking, zone: str, wall: str, words: list[str]
) -> None:
    in_zone(owner, zone)
    status, said = drag(owner, booking, start=wall)
    assert (status, said["code"], said["field"]) == (409, "which_time", "start")
    assert [choice["words"] for choice in said["choices"]] == words
    assert times(booking) == (at(60), at(120))
    chosen = said["choices"][1]["at"]
    assert drag(owner, booking, start=chosen)[0] == 200
    start = datetime.fromisoformat(chosen)
    assert times(booking) == (start, start + timedelta(hours=1))


def test_dragging_to_another_lane_does_not_ask_which_hour(owner: Client, lane: Lane) -> None:
    start = datetime(2030, 10, 27, 1, 30, tzinfo=UTC)  # the second 02:30 in Berlin
    night = booked(lane, start=start, end=start + timedelta(hours=1))
    builders.lane("other")
    in_zone(owner, "Europe/Berlin")
    assert drag(owner, night, start="2030-10-27T02:30:00", lane="other")[0] == 200
    assert times(night) == (start, start + timedelta(hours=1))


def form(booking: Booking, **changed: str) -> dict[str, str]:
    shown = {f"seen_{name}": value for name, value in seen(booking).items()}
    usual = {"lane": booking.lane.slug, "start": "2030-01-15T13:00", "end": "2030-01-15T14:00"}
    return {**shown, **usual, **changed}


def move(client: Client, booking: Booking, **changed: str) -> tuple[int, str]:
    answer = client.post(f"/calendar/bookings/{booking.pk}/move/", form(booking, **changed))
    return answer.status_code, answer.content.decode()


class TestTheForm:
    def test_it_shows_the_booking(self, owner: Client, booking: Booking) -> None:
        text = owner.get(f"/calendar/bookings/{booking.pk}/move/").content.decode()
        assert 'value="2030-01-15T13:00"' in text

    def test_it_moves_start_end_and_lane(self, owner: Client, booking: Booking) -> None:
        builders.lane("other")
        wish = {"start": "2030-01-15T15:00", "end": "2030-01-15T17:00", "lane": "other"}
        assert move(owner, booking, **wish)[0] == 302
        assert times(booking) == (at(180), at(300))
        assert booking.lane.slug == "other"

    def test_it_keeps_seconds_where_nothing_was_typed(self, owner: Client, lane: Lane) -> None:
        odd = booked(lane, start=at(600.5), end=at(660.25))
        wish = {"start": "2030-01-15T22:00", "end": "2030-01-15T23:30"}
        assert move(owner, odd, **wish)[0] == 302
        assert times(odd) == (at(600.5), at(690))

    def test_a_refusal_offers_the_nearest_slots(
        self, owner: Client, booking: Booking, lane: Lane
    ) -> None:
        booked(lane, builders.person("other"), start=at(240), end=at(300))
        wish = {"start": "2030-01-15T16:00", "end": "2030-01-15T17:00"}
        status, text = move(owner, booking, **wish)
        assert status == 409
        assert "Move to 15 Jan 17:00 \u2013 18:00" in text
        slot = f"{at(300).isoformat()}/{at(360).isoformat()}"
        assert move(owner, booking, **wish, take=slot)[0] == 302
        assert times(booking) == (at(300), at(360))

    def test_it_asks_which_hour_is_meant(self, owner: Client, booking: Booking) -> None:
        in_zone(owner, "Europe/Berlin")
        wish = {"start": "2030-10-27T02:30", "end": "2030-10-27T06:00"}
        status, text = move(owner, booking, **wish)
        assert status == 400
        assert "02:30 CEST (00:30 UTC)" in text
        chosen = datetime(2030, 10, 27, 1, 30, tzinfo=UTC)
        assert move(owner, booking, **wish, which_start=chosen.isoformat())[0] == 302
        assert times(booking) == (chosen, datetime(2030, 10, 27, 5, tzinfo=UTC))

    @pytest.mark.parametrize("start", ["", "soon", "2030-01-15T13:00Z", "2030-13-15T13:00"])
    def test_times_that_are_none_are_refused(
        self, owner: Client, booking: Booking, start: str
    ) -> None:
        assert move(owner, booking, start=start)[0] == 400
        assert times(booking) == (at(60), at(120))

    @pytest.mark.parametrize(
        "lie",
        [
            {"which_start": "x"},
            {"take": "x/y"},
            {"seen_start": "x"},
            {"seen_end": "2030-99-99T00:00Z"},
        ],
    )
    def test_hidden_fields_that_lie_are_refused(
        self, owner: Client, booking: Booking, lie: dict[str, str]
    ) -> None:
        assert move(owner, booking, **lie)[0] == 409
        assert times(booking) == (at(60), at(120))

    def test_it_is_not_for_others(self, booking: Booking) -> None:
        stranger = signed_in(builders.person("stranger"))
        assert move(stranger, booking, end="2030-01-15T16:00")[0] == 403
        booking.refresh_from_db()
        assert (booking.end, booking.state) == (at(120), State.CONFIRMED)
