"""The calendar in a real Chromium, on nights on which clocks are changed."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from bookings.models import Booking
from bookings.wall_clock import Change, changes, wall_of
from lanes import clock
from lanes.models import Lane
from tests import browser_pages as pages
from tests.browser_pages import Windows
from tests.test_browser_calendar import alice, lanes, windows

__all__ = ["alice", "lanes", "windows"]
pytest_plugins = ["tests.browser_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: pages in a browser (install chromium)"
    ),
]
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
QUARTER = timedelta(minutes=15)
WIDTH = 22  # pixels of a quarter of an hour


def next_change(zone: ZoneInfo, *, is_forward: bool) -> Change:
    """The next night on which clocks go forward, or back."""
    tomorrow = clock.database_now().astimezone(zone).date() + timedelta(days=2)
    found = changes(tomorrow, tomorrow + timedelta(days=380), zone)
    return next(each for each in found if (each.by > timedelta()) is is_forward)


def doubtful(change: Change, zone: ZoneInfo) -> datetime:
    """The first quarter of an hour on the wall that is skipped, or comes again."""
    return wall_of(change.at, zone) - max(change.by, timedelta())


def look(windows: Windows, user: User, zone: ZoneInfo, wall: datetime) -> Page:
    """The night in this zone, from its beginning on."""
    page = windows.open(user, zone=zone.key)
    page.goto(f"/calendar/?view=day&date={wall:%Y-%m-%d}")
    expect(page.locator("[data-lane=one]")).to_be_visible()
    page.wait_for_load_state("networkidle")
    page.locator("#timeline").evaluate("(place) => { place.scrollLeft = 0; }")
    return page


def x_of(wall: datetime) -> float:
    midnight = datetime.combine(wall.date(), time())
    return (wall - midnight) / QUARTER * WIDTH + WIDTH / 2


def answer(page: Page, name: str, moment: datetime) -> None:
    form = page.get_by_role("dialog", name="Book a slot")
    question = form.locator(f"#field-which_{name}")
    expect(question).to_contain_text("that night")
    expect(question.get_by_role("radio")).to_have_count(2)
    question.get_by_label(f"({moment.astimezone(UTC):%H:%M} UTC)").check()


@pytest.mark.parametrize("is_forward", [True, False])
@pytest.mark.parametrize("name", ZONES)
def test_a_click_into_an_hour_that_is_none_or_two_asks(
    windows: Windows, lanes: list[Lane], alice: User, name: str, is_forward: bool
) -> None:
    zone = ZoneInfo(name)
    change = next_change(zone, is_forward=is_forward)
    wall = doubtful(change, zone)
    page = look(windows, alice, zone, wall)
    expect(page.get_by_role("note")).to_contain_text("clocks go")
    page.locator("[data-lane=one]").click(position={"x": x_of(wall), "y": 16})
    meant = change.at if is_forward else change.at + change.by
    answer(page, "start", meant)
    form = page.get_by_role("dialog", name="Book a slot")
    expect(form.get_by_label("Start at")).to_have_value(f"{wall:%Y-%m-%dT%H:%M}")
    form.get_by_label("1 h").check()
    form.get_by_role("button", name="Book", exact=True).click()
    page.wait_for_url("**/lanes/one/")
    assert Booking.objects.get().start == meant


def test_a_drag_that_ends_in_such_an_hour_asks_as_well(
    windows: Windows, lanes: list[Lane], alice: User
) -> None:
    zone = ZoneInfo("Europe/Berlin")
    change = next_change(zone, is_forward=False)
    wall = doubtful(change, zone) + QUARTER
    page = look(windows, alice, zone, wall)
    box = page.locator("[data-lane=one]").bounding_box()
    assert box is not None
    y = box["y"] + 16
    page.mouse.move(box["x"] + x_of(wall - 6 * QUARTER), y)
    page.mouse.down()
    page.mouse.move(box["x"] + x_of(wall), y, steps=6)
    page.mouse.up()
    form = page.get_by_role("dialog", name="Book a slot")
    answer(page, "end", change.at + QUARTER * 2)
    form.get_by_role("button", name="Book", exact=True).click()
    page.wait_for_url("**/lanes/one/")
    assert Booking.objects.get().end == change.at + QUARTER * 2
