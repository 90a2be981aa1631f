"""The booking dialog with all that it can say: axe-core finds nothing serious in it."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from bookings.models import Booking, Policy
from bookings.recurrence import Every, Pattern
from bookings.series import AskedSeries, MadeSeries, book_series
from lanes import clock
from lanes.models import Lane, Phase
from tests import browser_pages as pages
from tests import builders
from tests.browser_pages import DESK, PHONE, Windows
from tests.test_accessibility import ALL_RULES, AXE, FIND, IS_STILL

pytest_plugins = ["tests.browser_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: pages in a browser (install chromium)"
    ),
]


@pytest.fixture
def windows(chromium: Browser, lane: Lane, live_server: LiveServer) -> Iterator[Windows]:
    with pages.windows(chromium, live_server.url) as opened:
        yield opened
    assert opened.complaints == []


@pytest.fixture
def lane(live_server: LiveServer) -> Lane:
    """Loaded with its default; others have it tomorrow from 13:00 to 14:00."""
    lane = builders.lane("demo", default_preset=builders.preset("small"))
    assert lane.default_preset is not None
    pages.order(lane, lane.default_preset)
    pages.runtime(lane, lane.default_preset, Phase.READY)
    Policy.objects.create(day_hours=8, approval="beyond", approval_hours=1)
    start = tomorrow() + timedelta(days=1)
    builders.booking(lane=lane, kind="gpu", preset=None, start=start)
    return lane


def tomorrow() -> datetime:
    now = clock.database_now() + timedelta(days=1)
    return now.replace(hour=13, minute=0, second=0, microsecond=0)


def serious(page: Page) -> list[str]:
    """What axe-core finds of the page as it stands, in both themes and at both widths."""
    page.evaluate(AXE)
    found = []
    for scheme, width in (("light", DESK), ("dark", DESK), ("light", PHONE), ("dark", PHONE)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(IS_STILL)
        found += page.evaluate(FIND, ALL_RULES)
    return found


def test_a_series_with_a_clash_and_other_times(windows: Windows, lane: Lane) -> None:
    page = windows.open(builders.person("alice"))
    page.goto("/")
    page.get_by_role("article", name="demo").get_by_role("link", name="Book", exact=False).click()
    form = page.get_by_role("dialog", name="Book a slot")
    expect(form.get_by_text("No reload: it is loaded by then.")).to_be_visible()
    form.get_by_label("Later").check()
    form.get_by_label("Start at").fill(
        f"{tomorrow().astimezone(ZoneInfo(pages.ZONE)):%Y-%m-%dT%H:%M}"
    )
    form.get_by_label("2 h", exact=True).check()
    expect(form.get_by_text("it is longer than 1 h")).to_be_visible()
    form.get_by_text("Repeat this slot").click()
    form.get_by_label("Repeat", exact=True).select_option("daily")
    form.get_by_label("Or how many times").fill("3")
    form.get_by_label("Or how many times").blur()
    expect(form.get_by_text("All of it can be booked at other times:")).to_be_visible()
    assert serious(page) == []
    page.set_viewport_size({"width": DESK, "height": 900})
    offer = form.get_by_role("link", name="Take", exact=False).first
    offer.click()
    expect(form.get_by_text("All of it can be booked at other times:")).to_have_count(0)
    expect(form.get_by_text("Free; an administrator must approve it.").first).to_be_visible()
    form.get_by_role("button", name="Book", exact=True).click()
    expect(page.get_by_text("3 slots are booked.")).to_be_visible()
    assert Booking.objects.exclude(series=None).count() == 3


def test_a_bookings_series_and_the_forms_behind_it(windows: Windows, lane: Lane) -> None:
    owner = builders.person("alice")
    start = tomorrow().replace(tzinfo=None) + timedelta(hours=4)
    asked = AskedSeries(
        lane, "gpu", None, start, start + timedelta(hours=1), "UTC", Pattern(Every.DAY, count=4)
    )
    made = book_series(owner=owner, asked=asked)
    assert isinstance(made, MadeSeries)
    page = windows.open(owner)
    page.goto(f"/bookings/{made.bookings[1].pk}/")
    expect(page.get_by_text("Number 2 of 4.", exact=False)).to_be_visible()
    page.get_by_text("All of the series", exact=True).first.click()
    assert serious(page) == []
    page.get_by_label("This one and those after it").check()
    page.get_by_role("button", name="Other times or length", exact=False).click()
    expect(page.get_by_label("This one and those after it")).to_be_checked()
    assert serious(page) == []
    page.go_back()
    page.get_by_label("This one and those after it").check()
    page.get_by_role("button", name="Give back", exact=False).click()
    expect(page.get_by_text("These 3 slots are given back:")).to_be_visible()
    assert serious(page) == []
    page.get_by_role("button", name="Give back").click()
    expect(page.get_by_text("3 slots are given back.")).to_be_visible()
    assert Booking.objects.filter(owner=owner, state="cancelled").count() == 3
