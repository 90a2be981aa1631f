"""The booking form in a browser: in a dialog, by keys alone, with a series, and on a phone."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from bookings.models import Booking
from lanes import clock
from lanes.models import Lane
from tests import browser_pages as pages
from tests import builders
from tests.browser_pages import PHONE, Windows

pytest_plugins = ["tests.browser_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: pages in a browser (install chromium)"
    ),
]


@pytest.fixture
def lane(live_server: LiveServer) -> Lane:
    return builders.lane("demo", default_preset=builders.preset("small"))


@pytest.fixture
def windows(chromium: Browser, lane: Lane, live_server: LiveServer) -> Iterator[Windows]:
    with pages.windows(chromium, live_server.url) as opened:
        yield opened
    assert opened.complaints == []


def take(lane: Lane, *, days: float) -> Booking:
    """Somebody has the lane for two hours around this time in so many days."""
    start = clock.database_now() + timedelta(days=days) - timedelta(minutes=30)
    end = start + timedelta(hours=2)
    return builders.booking(
        lane=lane,
        owner=builders.person("ada"),
        kind="gpu",
        preset=None,
        start=start,
        end=end,
        original_end=end,
    )


def opened(page: Page) -> Locator:
    """The form in its dialog."""
    page.goto("/")
    page.get_by_role("article", name="demo").get_by_role("link", name="Book", exact=False).click()
    return page.get_by_role("dialog", name="Book a slot")


def test_it_opens_over_the_page_and_closes_back_to_its_link(windows: Windows) -> None:
    page = windows.open(builders.person("alice"))
    form = opened(page)
    expect(form.get_by_label("Lane")).to_be_focused()
    expect(form.get_by_text("takes about").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(form).to_have_count(0)
    link = page.get_by_role("article", name="demo").get_by_role("link", name="Book", exact=False)
    expect(link).to_be_focused()


def test_refused_and_booked_from_a_suggestion_within_it(windows: Windows, lane: Lane) -> None:
    take(lane, days=0)
    page = windows.open(builders.person("alice"))
    form = opened(page)
    form.get_by_text("1 h", exact=True).click()
    form.get_by_role("button", name="Book", exact=True).click()
    refusal = form.get_by_role("alert")
    expect(refusal).to_be_focused()
    windows.forgive("409")
    refusal.get_by_role("link", name="Take").first.click()
    expect(form.get_by_label("Later")).to_be_checked()
    form.get_by_role("button", name="Book", exact=True).click()
    expect(page.get_by_text("demo is yours from")).to_be_visible()


def test_a_series_with_a_clash_by_keys_alone(windows: Windows, lane: Lane) -> None:
    take(lane, days=1)
    page = windows.open(builders.person("alice"), width=PHONE)
    page.goto("/book/?lane=demo")
    page.get_by_text("Repeat this slot").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Repeat", exact=True).focus()
    page.keyboard.type("Every day")
    page.get_by_label("Or how many times").focus()
    page.keyboard.type("3")
    page.keyboard.press("Tab")
    said = page.locator("#expect")
    expect(said).to_contain_text("Taken by ada")
    page.get_by_label("Leave out those").focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Book", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("2 slots are booked. 1 was left out.")).to_be_visible()
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= PHONE
