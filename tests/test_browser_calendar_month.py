"""The calendar's month in a real Chromium: booked, moved and resized by dragging, with undo."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import FloatRect, Locator, Page, expect

from bookings.models import Booking
from lanes import clock
from lanes.models import Lane
from tests import browser_pages as pages
from tests.browser_pages import Windows
from tests.test_browser_calendar import alice, booked, hours, lanes, windows

__all__ = ["alice", "lanes", "windows"]
pytest_plugins = ["tests.browser_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: pages in a browser (install chromium)"
    ),
]


@pytest.fixture
def day() -> datetime:
    """Midnight of the tenth of next month."""
    now = clock.database_now().astimezone(ZoneInfo(pages.ZONE))
    first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (first + timedelta(days=32)).replace(day=10)


@pytest.fixture
def booking(lanes: list[Lane], alice: User, day: datetime) -> Booking:
    """Alice's, from the 10th 6:00 to the 12th 18:00 on lane one."""
    return booked(lanes[0], alice, day, 6, 66)


def look(windows: Windows, user: User, day: datetime) -> Page:
    page = windows.open(user)
    page.goto(f"/calendar/?view=month&date={day:%Y-%m-%d}")
    expect(page.locator("#calendar-month.has-handles")).to_be_visible()
    return page


def cell(page: Page, lane: int, day: int) -> Locator:
    return page.locator("#calendar-month tbody tr").nth(lane).locator("td").nth(day - 1)


def drag(page: Page, start: tuple[float, float], days: float, rows: float = 0) -> None:
    one, other = box(cell(page, 0, 1)), box(cell(page, 1, 2))
    x, y = start
    page.mouse.move(x, y)
    page.mouse.down()
    to_x, to_y = x + days * (other["x"] - one["x"]), y + rows * (other["y"] - one["y"])
    page.mouse.move(to_x, to_y, steps=8)
    page.mouse.up()


def box(what: Locator) -> FloatRect:
    found = what.bounding_box()
    assert found is not None
    return found


def middle(what: Locator, at: float = 0.5) -> tuple[float, float]:
    found = box(what)
    return found["x"] + 2 + at * (found["width"] - 4), found["y"] + found["height"] / 2


def mine(page: Page) -> Locator:
    found = page.locator(".month-handle")
    expect(found).to_have_count(1)
    return found


def test_a_drag_across_days_books_them(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    page = look(windows, alice, day)
    drag(page, middle(cell(page, 1, 10)), days=2)
    form = page.get_by_role("dialog", name="Book a slot")
    expect(form.get_by_label("Lane")).to_have_value("two")
    expect(form.get_by_label("Start at")).to_have_value(f"{day:%Y-%m-}10T00:00")
    expect(form.get_by_label("End")).to_have_value(f"{day:%Y-%m-}13T00:00")


def test_a_click_or_enter_on_a_free_day_books_in_it(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    page = look(windows, alice, day)
    cell(page, 1, 10).click()
    form = page.get_by_role("dialog", name="Book a slot")
    expect(form.get_by_label("Start at")).to_have_value(f"{day:%Y-%m-}10T09:00")
    page.keyboard.press("Escape")
    cell(page, 1, 11).get_by_role("link").focus()
    page.keyboard.press("Enter")
    expect(form.get_by_label("Start at")).to_have_value(f"{day:%Y-%m-}11T09:00")
    page.keyboard.press("Escape")
    cell(page, 0, 11).get_by_role("link").click(position={"x": 10, "y": 5})
    page.wait_for_url("**view=day**#one")


def test_a_booking_is_dragged_by_days_and_the_move_undone(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    page = look(windows, alice, day)
    drag(page, middle(mine(page)), days=3)
    undo = page.get_by_role("button", name="Undo")
    expect(undo).to_be_visible()
    assert hours(booking, day) == (78, 138)
    undo.click()
    expect(page.get_by_text("Back where it was:")).to_be_visible()
    assert hours(booking, day) == (6, 66)


def test_a_booking_is_dragged_to_another_lane(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    page = look(windows, alice, day)
    drag(page, middle(mine(page)), days=1, rows=1)
    page.get_by_role("button", name="Move it: two").click()
    expect(page.get_by_text("Moved to two,")).to_be_visible()
    assert hours(booking, day) == (30, 90)
    assert booking.lane.slug == "two"
    expect(cell(page, 1, 12).get_by_role("link")).to_have_text("24 ★▣")


def test_an_end_is_dragged_by_days(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    page = look(windows, alice, day)
    drag(page, middle(mine(page), at=1), days=2, rows=1)
    expect(page.get_by_text("Moved to one,")).to_be_visible()
    assert hours(booking, day) == (6, 114)


def test_a_handle_opens_its_booking(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    page = look(windows, alice, day)
    mine(page).click()
    expect(page.get_by_role("dialog", name="Booking")).to_contain_text("06:00")
