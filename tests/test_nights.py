"""Nights in which clocks change, with site, reader and booking in zones of their own: one table.

What of it concerns pages is in test_web_wall_times, series in test_recurrence, sums of usage in
test_usage_days, and calendars that leave the installation in test_notice_calendars.
"""

from datetime import UTC, date, datetime, timedelta
from itertools import product
from zoneinfo import ZoneInfo

import icalendar
import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from rest_framework.test import APIClient

from bookings import services
from bookings.models import Booking, Policy
from bookings.refusals import RulesBroken
from lanes.models import Lane
from lanes.refusals import Refusal
from notices import preferences
from notices.feeds import feed_of
from notices.mail import send_due
from notices.routing import route
from notices.telling import tell_bookings
from tests import builders
from tests.conftest import Moment

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
# zone, the day of the change, how many hours it has
DAYS = [
    ("Europe/Berlin", date(2030, 3, 31), 23),
    ("Europe/Berlin", date(2030, 10, 27), 25),
    ("America/New_York", date(2030, 3, 10), 23),
    ("America/New_York", date(2030, 11, 3), 25),
    ("Australia/Lord_Howe", date(2030, 4, 7), 24.5),
    ("Australia/Lord_Howe", date(2030, 10, 6), 23.5),
]
ZONES = sorted({zone for zone, *_ in DAYS})
EVERY = [(*night, reader) for night, reader in product(DAYS, ZONES)]
everywhere = pytest.mark.parametrize(("site", "day", "hours", "reader"), EVERY)


def midnight(day: date, zone: str) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone)).astimezone(UTC)


@pytest.fixture
def lane() -> Lane:
    return builders.lane("left")


@pytest.fixture
def owner() -> User:
    return builders.person(email="owner@example.org")


def book(lane: Lane, owner: User, start: datetime, end: datetime) -> Booking | Refusal:
    return services.book(owner=owner, lane=lane, kind="gpu", preset=None, start=start, end=end)


@everywhere
@pytest.mark.parametrize("spare", [0, -0.25])
def test_a_day_of_the_site_has_as_many_hours_of_quota_as_it_has(
    moment: Moment, settings: Settings, lane: Lane, owner: User,
    site: str, day: date, hours: float, reader: str, spare: float,
) -> None:  # fmt: skip
    settings.TIME_ZONE = site
    start = midnight(day, site)
    moment.now = start - 30 * HOUR
    Policy.objects.create(day_hours=hours + spare)
    with timezone.override(reader):
        made = book(lane, owner, start, start + hours * HOUR)
    if spare < 0:
        assert isinstance(made, RulesBroken)
        (rule,) = made.broken
        assert (rule.broken.code, rule.broken.day) == ("day_full", day)
    else:
        assert isinstance(made, Booking)
        assert made.end == midnight(day + timedelta(days=1), site)


@everywhere
def test_what_is_over_the_change_is_told_in_the_reader_s_zone(
    moment: Moment, settings: Settings, lane: Lane, owner: User,
    site: str, day: date, hours: float, reader: str,
) -> None:  # fmt: skip
    settings.TIME_ZONE = site
    start = midnight(day, reader)  # over the change of the reader's clocks where it is theirs
    end = start + 6 * HOUR
    moment.now = start - 30 * HOUR
    preferences.save(owner, {"zone": reader})
    assert isinstance(book(lane, owner, start, end), Booking)
    tell_bookings(moment.now)
    route(moment.now)
    assert send_due() == 1
    local = end.astimezone(ZoneInfo(reader))
    name = local.tzname() or ""
    told = f"{local:%H:%M} {name}" if name.isalpha() else f"{local:%H:%M} Lord Howe UTC"
    assert told in mail.outbox[0].subject
    (event,) = icalendar.Calendar.from_ical(feed_of(owner, moment.now)[0]).events
    assert (event.start, event.end) == (start, end)


@everywhere
def test_rest_takes_moments_and_asks_which_is_meant_by_what_is_none(
    moment: Moment, settings: Settings, lane: Lane, owner: User,
    site: str, day: date, hours: float, reader: str,
) -> None:  # fmt: skip
    settings.TIME_ZONE = site
    start = midnight(day, site) + HOUR
    moment.now = start - 30 * HOUR
    client = APIClient()
    client.force_login(owner)
    client.cookies["zone"] = reader
    wish = {"lane": lane.slug, "kind": "gpu"}
    wall = f"{day}T02:15:00"
    naive = client.post("/api/v1/bookings/", {**wish, "start": wall, "end": wall}, format="json")
    assert naive.status_code == 400
    said = start.astimezone(ZoneInfo(reader))
    times = {"start": said.isoformat(), "end": (said + 3 * HOUR).astimezone(UTC).isoformat()}
    end = (said.astimezone(UTC) + 3 * HOUR).isoformat()
    made = client.post("/api/v1/bookings/", {**wish, **times, "end": end}, format="json")
    assert made.status_code == 201, made.json()
    booking = Booking.objects.get()
    assert (booking.start, booking.end) == (start, start + 3 * HOUR)


@pytest.mark.parametrize(("zone", "day", "hours"), DAYS)
def test_a_week_of_the_site_ends_at_its_own_midnight(
    moment: Moment, settings: Settings, lane: Lane, owner: User,
    zone: str, day: date, hours: float,
) -> None:  # fmt: skip
    """All these days are Sundays: what goes over the midnight behind them counts to two weeks."""
    settings.TIME_ZONE = zone
    middle = midnight(day + timedelta(days=1), zone)
    moment.now = middle - 60 * HOUR
    Policy.objects.create(week_hours=hours)
    assert isinstance(book(lane, owner, middle - hours * HOUR, middle + hours * HOUR), Booking)
    over = book(lane, owner, middle + 40 * HOUR, middle + 41 * HOUR)
    assert isinstance(over, RulesBroken)
    assert [rule.broken.code for rule in over.broken] == ["week_full"]


@pytest.mark.parametrize("reader", ZONES)
def test_pages_show_a_booking_over_the_change_with_the_reader_s_hours(
    moment: Moment, settings: Settings, client: Client, owner: User, lane: Lane, reader: str
) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    start = datetime(2030, 10, 27, 0, 30, tzinfo=UTC)  # 02:30 in Berlin, and an hour later, too
    moment.now = start - 3 * HOUR
    made = book(lane, owner, start, start + HOUR)
    assert isinstance(made, Booking)
    client.force_login(owner)
    client.cookies["zone"] = reader
    page = client.get(f"/bookings/{made.pk}/").content.decode()
    first, last = (each.astimezone(ZoneInfo(reader)) for each in (start, start + HOUR))
    assert f"{first:%H:%M}" in page
    assert f"{last:%H:%M}" in page
    names = [each.tzname() or "" for each in (first, last)]
    assert all(name in page for name in names)
