"""Links of mails in a real browser: looked at, then used, by who is not logged in."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Request, expect

from bookings.models import Booking
from lanes import clock
from notices.links import make_link
from notices.models import Link
from tests import browser_pages as pages
from tests import builders
from tests.browser_pages import Windows
from tests.web_server import WebServer

pytest_plugins = ["tests.browser_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: pages in a browser (install chromium)"
    ),
]


@pytest.fixture
def windows(chromium: Browser, live_server: WebServer) -> Iterator[Windows]:
    with pages.windows(chromium, live_server.url) as opened:
        yield opened
        assert opened.complaints == []


def running() -> Booking:
    now = clock.database_now()
    start, end = now - timedelta(minutes=10), now + timedelta(hours=1)
    return builders.booking(start=start, end=end)


@pytest.mark.parametrize("action", [Link.Action.EXTEND, Link.Action.RELEASE])
def test_a_link_of_a_mail_acts_on_its_button_and_leads_its_secret_nowhere(
    windows: Windows, action: Link.Action
) -> None:
    booking = running()
    secret = make_link(booking, action)
    page = windows.open()
    asked: list[Request] = []

    def note(request: Request) -> None:
        asked.append(request)

    page.on("request", note)
    page.goto(f"/once/{secret}/")
    assert Booking.objects.get(pk=booking.pk).end == booking.end
    page.locator(".card form button").click()
    expect(page.get_by_role("status")).to_be_visible()
    assert Booking.objects.get(pk=booking.pk).end != booking.end
    told = [each.all_headers().get("referer", "") for each in asked if "/once/" not in each.url]
    assert told
    assert not any(secret in each for each in told)


def test_the_page_that_shows_a_new_calendar_s_address_saves_what_is_chosen(
    windows: Windows,
) -> None:
    page = windows.open(builders.person("alice"))
    page.goto("/preferences/")
    page.get_by_role("button", name="Make an address").click()
    expect(page.locator("#feed")).to_contain_text("/feeds/")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
