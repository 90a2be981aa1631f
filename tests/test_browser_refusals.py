"""What pages offer and keep where something is refused, in a real Chromium."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from bookings.models import Booking, State
from lanes import clock
from lanes.models import Lane
from tests import browser_pages as pages
from tests import builders
from tests.browser_pages import Windows

pytest_plugins = ["tests.browser_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: pages in a browser (install chromium)"
    ),
]


@pytest.fixture
def windows(chromium: Browser, live_server: LiveServer) -> Iterator[Windows]:
    with pages.windows(chromium, live_server.url) as opened:
        yield opened
    assert opened.complaints == []


@pytest.fixture
def lane() -> Lane:
    return builders.lane("demo")


def claimed(lane: Lane, state: State, **more: object) -> Booking:
    """An hour of the whole GPU, from a minute ago."""
    start = clock.database_now() - timedelta(minutes=1)
    end = start + timedelta(hours=1)
    return builders.booking(
        lane=lane, owner=builders.person("alice"), kind="gpu", preset=None, state=state,
        start=start, end=end, original_end=end, **more,
    )  # fmt: skip


def test_what_is_held_for_her_is_taken_from_the_booking_form(windows: Windows, lane: Lane) -> None:
    until = clock.database_now() + timedelta(minutes=9)
    hold = claimed(lane, State.HELD, confirmed_at=None, held_until=until)
    page = windows.open(hold.owner)
    page.goto("/")
    page.get_by_role("article", name="demo").get_by_role("link", name="Book", exact=False).click()
    dialog = page.get_by_role("dialog", name="Book a slot")
    dialog.locator("[name=what]").select_option("gpu")
    expect(dialog.get_by_text("demo is held for you from")).to_be_visible()
    dialog.get_by_role("button", name="Take it").click()
    page.wait_for_url("**/bookings/")
    expect(page.get_by_text("Booked.")).to_be_visible()
    hold.refresh_from_db()
    assert hold.state == State.CONFIRMED


def test_a_comment_outlives_a_refresh_of_what_waits(windows: Windows, lane: Lane) -> None:
    claimed(lane, State.PENDING, confirmed_at=None, asked_at=clock.database_now())
    page = windows.open(builders.administrator())
    page.goto("/administration/approvals/")
    page.get_by_label("Comment (optional)").fill("Not this week")
    page.get_by_role("heading", name="Approvals").click()
    with page.expect_response(lambda answer: "page=1" in answer.url):
        page.evaluate("htmx.trigger('#waiting', 'now')")
    page.evaluate("new Promise((done) => setTimeout(done, 0))")
    expect(page.get_by_label("Comment (optional)")).to_have_value("Not this week")
