"""Booking at times that clocks show never or twice: asked, as moving does."""

from datetime import UTC, datetime

import pytest
from django.test import Client

from bookings.models import Booking
from lanes.models import Lane
from tests import builders
from tests.conftest import Moment
from tests.test_web_bookings import signed_in

pytestmark = pytest.mark.django_db
# Zone, a time on the wall, and the two moments that can be meant, in UTC.
ASKED = [
    ("Europe/Berlin", "2030-03-31T02:30", "2030-03-31T00:30", "2030-03-31T01:30"),
    ("Europe/Berlin", "2030-10-27T02:30", "2030-10-27T00:30", "2030-10-27T01:30"),
    ("America/New_York", "2030-03-10T02:30", "2030-03-10T06:30", "2030-03-10T07:30"),
    ("America/New_York", "2030-11-03T01:30", "2030-11-03T05:30", "2030-11-03T06:30"),
    ("Australia/Lord_Howe", "2030-10-06T02:15", "2030-10-05T15:15", "2030-10-05T15:45"),
    ("Australia/Lord_Howe", "2030-04-07T01:45", "2030-04-06T14:45", "2030-04-06T15:15"),
]


@pytest.fixture
def lane(moment: Moment) -> Lane:
    return builders.lane("demo")


@pytest.fixture
def member(lane: Lane) -> Client:
    return signed_in(builders.person("member"))


def wish(start: str, **changed: str) -> dict[str, str]:
    said = {"lane": "demo", "what": "gpu", "begins": "later", "start": start, "length": "120"}
    return said | changed


def in_utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(("zone", "wall", "first", "second"), ASKED)
def test_a_start_that_is_no_moment_or_two_is_asked(
    member: Client, zone: str, wall: str, first: str, second: str
) -> None:
    member.cookies["zone"] = zone
    text = member.get("/book/", {"lane": "demo", "start": wall}).content.decode()
    asked = member.post("/book/", wish(wall))
    assert asked.status_code == 400
    assert not Booking.objects.exists()
    for page in (text, asked.content.decode()):
        for choice in (first, second):
            assert f'name="which_start" value="{choice}:00+00:00"' in page
    member.post("/book/", wish(wall, which_start=f"{second}:00+00:00"))
    assert Booking.objects.get().start == in_utc(second)


def test_a_time_that_is_one_moment_is_not_asked(member: Client) -> None:
    member.cookies["zone"] = "Europe/Berlin"
    address = {"lane": "demo", "start": "2030-03-31T04:30"}
    assert b"which_start" not in member.get("/book/", address).content
    member.post("/book/", wish("2030-03-31T04:30"))
    assert Booking.objects.get().start == in_utc("2030-03-31T02:30")


def test_an_answer_to_another_question_is_none(member: Client) -> None:
    member.cookies["zone"] = "Europe/Berlin"
    wrong = wish("2030-10-27T02:30", which_start="2030-10-27T05:30:00+00:00")
    assert member.post("/book/", wrong).status_code == 400
    assert not Booking.objects.exists()


def test_an_end_is_asked_as_well(member: Client) -> None:
    member.cookies["zone"] = "Europe/Berlin"
    until = wish("2030-10-27T01:00", length="", end="2030-10-27T02:30")
    assert b'name="which_end"' in member.post("/book/", until).content
    member.post("/book/", until | {"which_end": "2030-10-27T01:30:00+00:00"})
    assert Booking.objects.get().end == in_utc("2030-10-27T01:30")


def test_while_it_is_asked_nothing_is_foretold(member: Client) -> None:
    member.cookies["zone"] = "Europe/Berlin"
    told = member.get("/book/expect/", wish("2030-10-27T02:30"))
    assert told.status_code == 200
    assert b"<p" not in told.content
