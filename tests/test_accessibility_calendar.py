"""axe-core finds nothing serious in the calendar's open dialogs: both themes, desk and phone."""

from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from bookings.models import Booking
from bookings.wall_clock import wall_of
from lanes.models import Lane
from tests import browser_pages as pages
from tests.browser_pages import DESK, PHONE, Windows
from tests.test_accessibility import AXE, FIND, IS_STILL
from tests.test_browser_calendar import alice, booked, lanes, windows
from tests.test_browser_calendar_clocks import next_change

__all__ = ["alice", "lanes", "windows"]
pytest_plugins = ["tests.browser_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: pages in a browser (install chromium)"
    ),
]
ZONE = ZoneInfo(pages.ZONE)


@pytest.fixture
def night() -> datetime:
    """Midnight before the clocks next go back."""
    wall = wall_of(next_change(ZONE, is_forward=False).at, ZONE)
    return wall.replace(hour=0, minute=0, tzinfo=ZONE)


@pytest.fixture
def booking(lanes: list[Lane], alice: User, night: datetime) -> Booking:
    return booked(lanes[0], alice, night, 0, 1)


def create(page: Page) -> None:
    page.locator("[data-lane=two]").click(position={"x": 10, "y": 16})
    expect(page.get_by_role("dialog", name="Book a slot")).to_be_visible()


def ask(page: Page) -> None:
    page.locator("[data-lane=two]").click(position={"x": 10 * 22 + 5, "y": 16})
    expect(page.get_by_role("dialog").get_by_text("that night")).to_be_visible()


def tell(page: Page) -> None:
    page.locator(".tl-event.mine").click()
    expect(page.get_by_role("dialog", name="Booking")).to_be_visible()


def move_into_two_hours(page: Page) -> None:
    page.locator(".tl-event.mine").hover()
    box = page.locator(".tl-event.mine").bounding_box()
    assert box is not None
    x, y = box["x"] + 40, box["y"] + 16
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 180, y, steps=5)  # two hours; nearer a phone's border it would scroll on
    page.mouse.up()
    expect(page.get_by_role("dialog").get_by_text("Which one?")).to_be_visible()


def findings(page: Page) -> list[str]:
    page.wait_for_load_state("networkidle")
    page.evaluate(AXE)
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.wait_for_function(IS_STILL)
        found += [f"{scheme}: {words}" for words in page.evaluate(FIND, {})]
    return found


@pytest.mark.parametrize("width", [DESK, PHONE])
@pytest.mark.parametrize("opened", [create, ask, tell, move_into_two_hours])
def test_nothing_serious_is_found_in_an_open_dialog(
    windows: Windows,
    alice: User,
    booking: Booking,
    night: datetime,
    opened: Callable[[Page], None],
    width: int,
) -> None:
    page = windows.open(alice, width=width)
    page.goto(f"/calendar/?view=day&date={night:%Y-%m-%d}&as=picture")
    expect(page.locator("[data-lane=two]")).to_be_visible()
    page.wait_for_load_state("networkidle")
    page.locator("#timeline").evaluate("(place) => { place.scrollLeft = 0; }")
    opened(page)
    assert findings(page) == []
    assert page.evaluate("document.scrollingElement.scrollWidth") == width
    if opened is move_into_two_hours:
        windows.forgive("409")


def test_dialogs_leave_motion_to_those_who_want_it(windows: Windows, alice: User) -> None:
    page = windows.open(alice)
    page.goto("/calendar/?view=day")
    expect(page.locator("#timeline")).to_be_visible()
    moving = """() => [...document.querySelectorAll("#calendar *")].filter((one) =>
        getComputedStyle(one).animationName !== "none" || getComputedStyle(one).scrollBehavior
        === "smooth").length"""
    assert page.evaluate(moving) == 0
