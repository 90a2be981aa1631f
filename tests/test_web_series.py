"""Pages: a series on its bookings' pages, and this, this and those after it, or all changed."""

import re
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from bookings.models import Booking, Series
from bookings.recurrence import Every, Pattern
from bookings.series import AskedSeries, MadeSeries, book_series
from lanes.models import Lane
from slotserve.booking_series import Member, pattern_words
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
def rows(lane: Lane, owner: User) -> list[Booking]:
    """Four days, from 13:00 to 14:00 UTC."""
    start = wall("2030-01-15 13:00")
    pattern = Pattern(Every.DAY, count=4)
    asked = AskedSeries(lane, "gpu", None, start, start + timedelta(hours=1), "UTC", pattern)
    made = book_series(owner=owner, asked=asked)
    assert isinstance(made, MadeSeries)
    return list(made.bookings)


@pytest.fixture
def client(owner: User) -> Client:
    client = Client()
    client.force_login(owner)
    client.cookies[COOKIE] = "UTC"
    return client


def starts() -> list[str]:
    found = Booking.objects.filter(state="confirmed").order_by("start")
    return [f"{each.start:%d %H:%M}" for each in found]


def test_a_booking_tells_its_series(client: Client, rows: list[Booking]) -> None:
    page = client.get(f"/bookings/{rows[1].pk}/").content.decode()
    assert "Number 2 of 4. Every day, 4 times; by the clock of UTC." in page
    for other in (rows[0], rows[2], rows[3]):
        assert f'href="/bookings/{other.pk}/"' in page
    assert "This one and those after it" in page


def test_one_without_a_series_tells_none(client: Client, lane: Lane, owner: User) -> None:
    single = booked(lane, owner)
    assert "Number 1 of" not in client.get(f"/bookings/{single.pk}/").content.decode()
    assert client.get(f"/bookings/{single.pk}/series/release/").status_code == 404


def test_guests_are_not_told(rows: list[Booking]) -> None:
    guest = builders.person("guest")
    rows[0].shares.create(member=guest, added_at=at(0))
    client = Client()
    client.force_login(guest)
    assert "Number 1 of 4" not in client.get(f"/bookings/{rows[0].pk}/").content.decode()
    assert client.get(f"/bookings/{rows[0].pk}/series/release/").status_code == 403


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"every": "daily", "count": 1}, "Every day, 1 time; by the clock of UTC."),
        (
            {"every": "weekdays", "until": "2030-02-04"},
            "Monday to Friday, until 4 Feb 2030; by the clock of UTC.",
        ),
        (
            {"every": "weekly", "days": [0, 2], "count": 5, "until": "2030-02-04"},
            "Every week on Monday, Wednesday, until 4 Feb 2030, 5 times; by the clock of UTC.",
        ),
        ({"every": "weekly", "count": 2}, "Every week on Tuesday, 2 times; by the clock of UTC."),
    ],
)
def test_patterns_are_said_in_words(fields: dict[str, object], words: str, owner: User) -> None:
    series = Series(owner=owner, zone="UTC", created_at=at(0), **fields)
    series.clean_fields(exclude=["days"])
    first = Member(1, Booking(start=at(0), end=at(60)), "upcoming", is_this=True)  # type: ignore[arg-type]
    assert pattern_words(series, [first]) == words


def move(client: Client, booking: Booking, span: str, start: str, end: str) -> int:
    form = {"lane": "demo", "start": f"2030-01-{start}", "end": f"2030-01-{end}", "span": span}
    return client.post(f"/calendar/bookings/{booking.pk}/move/", form).status_code


@pytest.mark.parametrize(
    ("span", "hours"),
    [
        ("this", ["13", "15", "13", "13"]),
        ("following", ["13", "15", "15", "15"]),
        ("all", ["15", "15", "15", "15"]),
        ("", ["13", "15", "13", "13"]),
    ],
)
def test_those_that_are_meant_move(
    client: Client, rows: list[Booking], span: str, hours: list[str]
) -> None:
    assert move(client, rows[1], span, "16T15:00", "16T16:00") == 302
    assert [each[3:5] for each in starts()] == hours


def test_another_length_is_for_those_that_are_meant(client: Client, rows: list[Booking]) -> None:
    assert move(client, rows[2], "following", "17T13:00", "17T13:30") == 302
    lengths = [(each.end - each.start).seconds // 60 for each in Booking.objects.order_by("start")]
    assert lengths == [60, 60, 30, 30]


def test_one_that_cannot_move_is_named_and_nothing_moves(
    client: Client, rows: list[Booking], lane: Lane
) -> None:
    booked(lane, start=at(2 * DAY + 120), end=at(2 * DAY + 180))
    before = starts()
    form = {"lane": "demo", "start": "2030-01-15T14:00", "end": "2030-01-15T15:00", "span": "all"}
    answer = client.post(f"/calendar/bookings/{rows[0].pk}/move/", form)
    assert answer.status_code == 409
    page = answer.content.decode()
    assert "The one of 17 Jan" in page
    assert starts() == before
    # Other times for all, one tap each.
    offered = re.findall(r'name="take" value="([^"]+)"', page)
    assert len(offered) == 3
    form["take"] = offered[0]
    assert client.post(f"/calendar/bookings/{rows[0].pk}/move/", form).status_code == 302
    assert [each[3:] for each in starts()] == ["15:00"] * 2 + ["14:00", "15:00", "15:00"]


def test_the_form_of_a_move_is_for_those_that_were_chosen(
    client: Client, rows: list[Booking]
) -> None:
    page = client.get(f"/calendar/bookings/{rows[0].pk}/move/?span=following").content.decode()
    assert 'value="following" class="form-check-input" id="id_span_1" checked' in page


class TestGivingBack:
    """Which they are is shown, then done."""

    @pytest.mark.parametrize(("span", "left"), [("this", 3), ("following", 1), ("all", 0)])
    def test_those_that_are_meant(
        self, client: Client, rows: list[Booking], span: str, left: int
    ) -> None:
        address = f"/bookings/{rows[1].pk}/series/release/"
        page = client.get(f"{address}?span={span}").content.decode()
        assert page.count("13:00</time>") == 4 - left
        assert len(starts()) == 4
        assert client.post(address, {"span": span}).status_code == 302
        assert len(starts()) == left

    def test_one_in_progress_is_released(
        self, client: Client, rows: list[Booking], moment: Moment
    ) -> None:
        moment.set(90)
        address = f"/bookings/{rows[0].pk}/series/release/"
        assert "in progress: the rest of it" in client.get(f"{address}?span=all").content.decode()
        client.post(address, {"span": "all"})
        rows[0].refresh_from_db()
        assert (rows[0].end, rows[0].state) == (at(90), "confirmed")

    def test_when_none_is_left_it_says_so(
        self, client: Client, rows: list[Booking], moment: Moment
    ) -> None:
        moment.set(9 * DAY)
        address = f"/bookings/{rows[0].pk}/series/release/"
        assert "they are over" in client.get(f"{address}?span=all").content.decode()
        assert client.post(address, {"span": "all"}).status_code == 409

    def test_only_ones_own(self, rows: list[Booking]) -> None:
        stranger = Client()
        stranger.force_login(builders.person("stranger"))
        address = f"/bookings/{rows[0].pk}/series/release/"
        assert stranger.get(address).status_code == 404
        assert stranger.post(address, {"span": "all"}).status_code == 404
