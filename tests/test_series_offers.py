"""A series that cannot be booked whole is offered other times at which it can."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from bookings.models import Booking, Policy
from bookings.recurrence import Every, Pattern
from bookings.series import AskedSeries, MadeSeries, SeriesRefused, book_series, nearest_starts
from bookings.series_offers import other_starts
from lanes.models import Lane, Maintenance
from slotserve.web.zones import COOKIE
from tests import builders
from tests.booking_cast import booked
from tests.builders import at
from tests.conftest import Moment

DAY = 24 * 60
wall = datetime.fromisoformat


@pytest.fixture
def lane(moment: Moment, db: None) -> Lane:
    return builders.lane("demo")


@pytest.fixture
def owner(db: None) -> User:
    return builders.person("owner")


@pytest.fixture
def asked(lane: Lane) -> AskedSeries:
    """Four days, from 13:00 to 14:00 UTC."""
    start = wall("2030-01-15 13:00")
    end = start + timedelta(hours=1)
    return AskedSeries(lane, "gpu", None, start, end, "UTC", Pattern(Every.DAY, count=4))


def offered(owner: User, asked: AskedSeries) -> list[str]:
    return [f"{each.start:%H:%M}" for each in nearest_starts(owner, asked)]


def test_others_of_the_day_are_tried_the_nearest_first() -> None:
    found = list(other_starts(wall("2030-01-15 13:05")))
    assert [f"{each:%H:%M}" for each in found[:4]] == ["13:00", "13:15", "12:50", "13:20"]
    assert {each.date() for each in found} == {wall("2030-01-15").date()}
    assert wall("2030-01-15 13:05") not in found


def test_three_that_are_free_on_each_day(owner: User, asked: AskedSeries, lane: Lane) -> None:
    booked(lane, start=at(DAY + 60), end=at(DAY + 90))  # the second day, 13:00 to 13:30
    booked(lane, start=at(2 * DAY + 150), end=at(2 * DAY + 180))  # the third, 14:30 to 15:00
    answer = book_series(owner=owner, asked=asked)
    assert isinstance(answer, SeriesRefused)
    assert [f"{each.start:%H:%M}" for each in answer.nearest] == ["13:30", "12:00", "15:00"]
    for each in answer.nearest:
        start = each.start.replace(tzinfo=None)
        other = replace(asked, start=start, end=start + timedelta(hours=1))
        made = book_series(owner=owner, asked=other)
        assert isinstance(made, MadeSeries), made


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"grid_minutes": 60}, ["12:00", "14:00", "15:00"]),
        ({"may_book": False}, []),
        ({"notice_minutes": 180}, ["15:00", "16:00", "17:00"]),
    ],
)
def test_those_that_are_offered_break_no_rule(
    owner: User, asked: AskedSeries, lane: Lane, rules: dict[str, Any], expected: list[str]
) -> None:
    booked(lane, start=at(DAY + 60), end=at(DAY + 90))
    Policy.objects.create(**rules)
    assert offered(owner, asked) == expected


def test_maintenance_is_in_the_way(owner: User, asked: AskedSeries, lane: Lane) -> None:
    Maintenance.objects.create(lane=lane, start=at(DAY), end=at(DAY + 300))
    assert offered(owner, asked) == ["17:00", "18:00", "19:00"]
    Maintenance.objects.create(lane=lane, start=at(DAY), end=None)
    assert offered(owner, asked) == []


def test_the_work_is_bounded(
    owner: User, asked: AskedSeries, django_assert_max_num_queries: Any
) -> None:
    Policy.objects.create(may_book=False, day_hours=1)
    long = replace(asked, pattern=Pattern(Every.DAY, count=100))
    with django_assert_max_num_queries(30):
        nearest_starts(owner, long)


class TestPages:
    """The form's preview and refusal."""

    @pytest.fixture
    def client(self, owner: User) -> Client:
        client = Client()
        client.force_login(owner)
        client.cookies[COOKIE] = "Europe/Berlin"
        return client

    def form(self, **changed: str) -> dict[str, str]:
        usual = {"lane": "demo", "what": "gpu", "begins": "later", "start": "2030-01-15T14:00"}
        return {**usual, "length": "60", "repeat": "daily", "count": "4", **changed}

    def test_other_times_are_one_tap_each(self, client: Client, lane: Lane) -> None:
        booked(lane, start=at(DAY + 60), end=at(DAY + 90))
        for answer in (
            client.get("/book/expect/", self.form()), client.post("/book/", self.form())
        ):  # fmt: skip
            text = answer.content.decode()
            assert "All of it can be booked at other times:" in text
            assert "begins=later&amp;start=2030-01-15T14%3A30" in text
            assert "repeat=daily&amp;count=4" in text
        taken = client.get("/book/?lane=demo&what=gpu&repeat=daily&count=4&begins=later"
                           "&start=2030-01-15T14%3A30&end=2030-01-15T15%3A30")  # fmt: skip
        assert 'value="2030-01-15T14:30"' in taken.content.decode()

    def test_a_night_of_a_change_asks_which_is_meant(self, client: Client, lane: Lane) -> None:
        night = self.form(start="2030-10-26T02:30", count="2")
        text = client.get("/book/expect/", night).content.decode()
        assert "02:30 comes twice that night" in text
        name, first, second = (
            "meant-start-20301027", "2030-10-27T00:30:00+00:00", "2030-10-27T01:30:00+00:00"
        )  # fmt: skip
        assert f'name="{name}" id="{name}-1" value="{first}" checked' in text
        again = client.get("/book/expect/", night | {name: second}).content.decode()
        assert f'name="{name}" id="{name}-2" value="{second}" checked' in again
        assert "the second is meant" in again
        assert client.post("/book/", night | {name: second}).status_code == 302
        owner = User.objects.get(username="owner")
        starts = [each.start.isoformat() for each in owner.bookings.order_by("start")]
        assert starts == ["2030-10-26T00:30:00+00:00", second]

    def test_what_is_meant_of_the_first_day_is_asked_in_the_form(
        self, client: Client, lane: Lane
    ) -> None:
        first = self.form(start="2030-10-27T02:30", count="2")
        second = "2030-10-27T01:30:00+00:00"
        chosen = first | {"which_start": second}
        text = client.get("/book/expect/", chosen).content.decode()
        assert "the second is meant" in text
        assert client.post("/book/", chosen).status_code == 302
        starts = Booking.objects.order_by("start").values_list("start", flat=True)
        assert [each.isoformat() for each in starts] == [second, "2030-10-28T01:30:00+00:00"]

    def test_a_length_is_one_of_the_clock(self, client: Client, lane: Lane) -> None:
        night = self.form(start="2030-03-31T01:30", count="2")
        assert client.post("/book/", night).status_code == 302
        ends = Booking.objects.order_by("start").values_list("end", flat=True)
        assert [f"{each:%d %H:%M}" for each in ends] == ["31 01:30", "01 00:30"]

    @pytest.mark.parametrize("value", ["", "soon", "2030-10-27T02:30", "9" * 400])
    def test_an_answer_that_is_none_is_the_usual_one(
        self, client: Client, lane: Lane, value: str
    ) -> None:
        night = self.form(start="2030-10-26T02:30", count="2")
        answer = client.get("/book/expect/", night | {"meant-start-20301027": value})
        assert "the first is meant" in answer.content.decode()
