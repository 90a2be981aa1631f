"""The calendar under a finger: it waits to take hold of something, and scrolls when it does not."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from bookings.models import Booking
from lanes import clock
from lanes.models import Lane
from tests import browser_pages as pages
from tests import builders
from tests.browser_pages import PHONE, Windows
from tests.running import eventually

pytest_plugins = ["tests.browser_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: pages in a browser (install chromium)"
    ),
]
HOUR = timedelta(hours=1)
WIDTH = 88  # pixels of an hour


@pytest.fixture
def day() -> datetime:
    """Midnight of a day in a week, on the clocks of the windows."""
    now = clock.database_now().astimezone(ZoneInfo(pages.ZONE)) + timedelta(days=7)
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


@pytest.fixture
def lane(live_server: LiveServer) -> Lane:
    return builders.lane("one")


@pytest.fixture
def booking(lane: Lane, day: datetime) -> Booking:
    """Alice's, from 8 to 9."""
    alice = builders.person("alice")
    start, end = day + 8 * HOUR, day + 9 * HOUR
    return builders.booking(lane=lane, owner=alice, kind="gpu", start=start, end=end)


@pytest.fixture
def windows(chromium: Browser, lane: Lane, live_server: LiveServer) -> Iterator[Windows]:
    with pages.windows(chromium, live_server.url) as opened:
        yield opened
    assert opened.complaints == []


class Finger:
    """One that touches the glass at a place, moves, and is lifted."""

    def __init__(self, page: Page) -> None:
        self._devtools = page.context.new_cdp_session(page)
        self._x = self._y = 0.0

    def put(self, x: float, y: float) -> None:
        self._x, self._y = x, y
        self._tell("touchStart", [{"x": x, "y": y}])

    def go(self, right: float, steps: int = 8) -> None:
        for step in range(1, steps + 1):
            x = self._x + right * step / steps
            self._tell("touchMove", [{"x": x, "y": self._y}])
        self._x += right

    def lift(self) -> None:
        self._tell("touchEnd", [])

    def _tell(self, kind: str, points: list[dict[str, float]]) -> None:
        self._devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def look(windows: Windows, user: User, day: datetime) -> Page:
    page = windows.open(user, width=PHONE, is_touched=True)
    page.goto(f"/calendar/?view=day&date={day:%Y-%m-%d}&as=picture")
    expect(page.locator(".tl-event.mine")).to_have_count(1)
    return page


def middle(what: Locator) -> tuple[float, float]:
    what.scroll_into_view_if_needed()
    box = what.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def held(page: Page) -> None:
    """Until the finger has waited long enough."""
    expect(page.locator("#timeline.is-dragging")).to_be_visible()


def stand_still(page: Page) -> None:
    """The page's clock stops: however slow the machine is, the finger has not waited."""
    now = clock.database_now()
    page.clock.install(time=now)
    page.clock.pause_at(now + HOUR / 60)


def test_a_finger_that_waits_moves_a_booking(
    windows: Windows, booking: Booking, day: datetime
) -> None:
    page = look(windows, booking.owner, day)
    finger = Finger(page)
    finger.put(*middle(page.locator(".tl-event.mine")))
    held(page)
    finger.go(WIDTH / 2)
    finger.lift()
    expect(page.get_by_text("Moved to one,")).to_be_visible()
    booking.refresh_from_db()
    assert (booking.start - day, booking.end - booking.start) == (8.5 * HOUR, HOUR)


def test_a_finger_that_waits_on_a_free_place_books(
    windows: Windows, booking: Booking, day: datetime
) -> None:
    page = look(windows, booking.owner, day)
    x, y = middle(page.locator(".tl-event.mine"))
    finger = Finger(page)
    finger.put(x + WIDTH, y)
    held(page)
    finger.go(WIDTH / 2)
    finger.lift()
    form = page.get_by_role("dialog", name="Book a slot")
    expect(form.get_by_label("Start at")).to_have_value(f"{day:%Y-%m-%d}T09:30")


def test_a_finger_that_moves_at_once_scrolls(
    windows: Windows, booking: Booking, day: datetime
) -> None:
    page = look(windows, booking.owner, day)
    timeline = page.locator("#timeline")
    before = timeline.evaluate("place => place.scrollLeft")
    stand_still(page)
    finger = Finger(page)
    finger.put(*middle(page.locator(".tl-event.mine")))
    finger.go(-WIDTH)
    finger.lift()
    eventually(lambda: timeline.evaluate("place => place.scrollLeft") > before, "a scroll")
    expect(page.get_by_role("dialog")).to_have_count(0)
    booking.refresh_from_db()
    assert booking.start == day + 8 * HOUR
