"""How a page holds on to its stream: it waits longer each time, and finds out that one is dead."""

import re
from collections.abc import Iterator

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import Browser, Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from lanes.models import Lane, LoadRecord, Phase
from tests import browser_pages as pages
from tests import builders
from tests.browser_pages import Windows
from tests.running import eventually
from tests.test_estimates import loaded

pytest_plugins = ["tests.browser_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: pages in a browser (install chromium)"
    ),
]
STREAM = "**/events/"
FIRST_MS, MOST_MS = 500, 60_000  # as static/slotserve/live.js has them; of each a half is chance
SILENT_MS = 41_000


@pytest.fixture
def lane(live_server: LiveServer) -> Lane:
    small = builders.preset("small")
    lane = builders.lane("demo", default_preset=small)
    pages.order(lane, small, "running small as the lane's default")
    pages.runtime(lane, small, Phase.READY)
    return lane


@pytest.fixture
def windows(chromium: Browser, lane: Lane, live_server: LiveServer) -> Iterator[Windows]:
    with pages.windows(chromium, live_server.url) as opened:
        yield opened
    assert opened.complaints == []


@pytest.fixture
def page(windows: Windows) -> Page:
    """A member's window, whose clock stands still until a test lets it run."""
    page = windows.open(builders.person("alice"))
    page.clock.install()
    return page


class Tries:
    """Each connection that a page makes to the stream."""

    def __init__(self, page: Page) -> None:
        self.count = self._ended = 0
        page.on("request", lambda asked: self._began(asked.url))
        page.on("requestfailed", lambda asked: self._has_ended(asked.url))

    def until(self, page: Page, count: int) -> None:
        """Until so many were made and ended, as fast as the browser tells."""
        eventually(lambda: bool(page.evaluate("1")) and self._ended >= count, f"{count} tries")
        assert self.count == count

    def _began(self, url: str) -> None:
        self.count += url.endswith("/events/")

    def _has_ended(self, url: str) -> None:
        self._ended += url.endswith("/events/")


def test_pauses_between_tries_grow(page: Page, windows: Windows) -> None:
    tries = Tries(page)
    page.route(STREAM, lambda route: route.abort())
    page.goto("/")
    for count in range(1, 10):
        tries.until(page, count)
        pause = min(MOST_MS, FIRST_MS * 2 ** (count - 1))
        page.clock.run_for(pause // 2 - 50)
        assert tries.count == count
        page.clock.run_for(pause + 100)
    expect(page.locator("#connection")).to_contain_text("Connection lost, trying again.")
    page.unroute(STREAM)
    page.clock.fast_forward(2 * MOST_MS)
    page.clock.resume()
    expect(page.locator("#connection")).to_have_text("")
    windows.forgive("net::ERR_FAILED")


def test_a_stream_that_says_nothing_is_given_up(page: Page) -> None:
    tries = Tries(page)
    held: list[Route] = []

    def hold(route: Route) -> None:
        """The first is never answered: so is a connection that has died in a machine's sleep."""
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route(STREAM, hold)
    page.goto("/")
    eventually(lambda: bool(page.evaluate("1")) and bool(held), "a stream is asked for")
    page.clock.run_for(SILENT_MS)
    with page.expect_response(STREAM):
        page.clock.run_for(FIRST_MS * 2)
    assert tries.count == 2


@pytest.mark.parametrize("late", ["stream", "part"])
def test_logging_out_is_not_overtaken_by_what_the_old_page_learns(
    windows: Windows, lane: Lane, late: str
) -> None:
    """The stream, or a part of the page, finds no session while the browser is on its way."""
    page = windows.open(builders.person("alice"))
    log_out: list[Route] = []
    asked: list[Route] = []

    def hold(route: Route) -> None:
        (log_out if route.request.method == "POST" else asked).append(route)

    page.route("**/accounts/logout/", hold)
    page.route(STREAM if late == "stream" else "**/?lane=demo", hold)
    page.goto("/")
    page.wait_for_load_state()
    if late == "part":
        card = page.locator('[data-live^="lane:"]')
        card.evaluate("card => window.htmx.trigger(card, 'now')")
    eventually(lambda: bool(page.evaluate("1")) and bool(asked), f"the {late} is asked for")

    page.locator(".own-menu summary").click()
    with page.expect_request("**/accounts/logout/"):
        page.get_by_role("button", name="Log out").click(no_wait_after=True)
    Session.objects.all().delete()
    asked[0].continue_()
    page.wait_for_timeout(1000)  # time for it to be answered, and to lead to the log-in page
    log_out[0].fulfill(body="you have logged out")
    expect(page.locator("body")).to_have_text("you have logged out")


def test_who_goes_back_after_logging_out_is_led_to_log_in(windows: Windows, lane: Lane) -> None:
    page = windows.open(builders.person("alice"))
    page.clock.install()
    page.route("**/accounts/logout/", lambda route: route.fulfill(status=204))  # the page stays
    with page.expect_response(STREAM):
        page.goto("/")
    page.clock.pause_at(page.evaluate("Date.now()") + 1000)  # no time passes after leaving
    page.locator(".own-menu summary").click()
    with page.expect_response("**/accounts/logout/"):
        page.get_by_role("button", name="Log out").click()
    Session.objects.all().delete()
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    expect(page).to_have_url(re.compile("/accounts/login/"))
    windows.forgive("401")


def test_a_page_that_was_frozen_shows_what_is_so_now(windows: Windows, lane: Lane) -> None:
    page = windows.open(builders.person("alice"))
    with page.expect_response(STREAM):
        page.goto("/")
    page.evaluate("window.isTheSame = true")
    browser = page.context.new_cdp_session(page)
    browser.send("Page.setWebLifecycleState", {"state": "frozen"})
    pages.order(lane, None, "unloaded for maintenance")
    browser.send("Page.setWebLifecycleState", {"state": "active"})
    card = page.get_by_role("article", name="demo")
    expect(card).to_contain_text("unloaded for maintenance")
    assert page.evaluate("window.isTheSame")


def test_a_load_that_is_late_promises_no_minute(windows: Windows, lane: Lane) -> None:
    """It goes on by itself between two fragments."""
    assert lane.default_preset is not None
    loaded(lane, lane.default_preset, minute=-60, seconds=60)
    pages.runtime(lane, lane.default_preset, Phase.STARTING, age=10)
    page = windows.open(builders.person("alice"))
    page.clock.install()
    page.goto("/")
    card = page.get_by_role("article", name="demo")
    page.clock.run_for(2000)
    expect(card).to_contain_text("s left · ready at")
    page.clock.run_for(60_000)
    expect(card).to_contain_text("Takes longer than the usual 60 s")
    expect(card.get_by_text("ready at")).to_be_hidden()


def test_how_to_use_a_lane_is_told_over_the_overview(windows: Windows) -> None:
    page = windows.open(builders.person("alice"))
    page.goto("/")
    link = page.get_by_role("link", name="Use demo")
    link.click()
    told = page.get_by_role("dialog", name="Use demo")
    expect(told.get_by_label("Example request")).to_contain_text('"model": "small"')
    told.get_by_text("Python (anthropic)").click()
    expect(told.get_by_label("Anthropic")).to_contain_text("/lanes/demo")
    expect(told.get_by_label("Example request")).to_be_hidden()  # one at a time
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    told.get_by_role("button", name="Copy").click()
    expect(told.get_by_role("button", name="Copied")).to_be_visible()
    assert "from anthropic import" in page.evaluate("navigator.clipboard.readText()")
    page.keyboard.press("Escape")
    expect(told).to_have_count(0)
    expect(link).to_be_focused()
    assert re.search(r"/lanes/demo/#use$", link.get_attribute("href") or "")


def test_what_is_to_be_pasted_follows_what_the_lane_is_to_run(windows: Windows, lane: Lane) -> None:
    page = windows.open(builders.person("alice"))
    with page.expect_response(STREAM):
        page.goto("/lanes/demo/")
    example = page.get_by_label("Example request")
    expect(example).to_contain_text('"model": "small"')
    pages.order(lane, builders.preset("large"), "loading large for the slot")
    expect(example).to_contain_text('"model": "large"')
    expect(page.get_by_label("Anthropic")).to_contain_text('model="large"')


def test_a_load_appears_in_the_picture_and_what_was_opened_stays_open(
    windows: Windows, lane: Lane
) -> None:
    page = windows.open(builders.person("alice"))
    revision = builders.preset("small-2").current
    record = {"lane": lane, "revision": revision, "generation": 1, "succeeded": True}
    LoadRecord.objects.create(**record, seconds=3.0, started_at=builders.NOON)
    page.goto("/lanes/demo/")
    page.get_by_text("As a table").click()
    expect(page.locator("figure.loads tbody tr")).to_have_count(1)
    LoadRecord.objects.create(**record, seconds=4.5, started_at=builders.NOON)
    page.evaluate("htmx.trigger('#live', 'now')")
    expect(page.locator("figure.loads rect")).to_have_count(2)
    expect(page.get_by_role("cell", name="4.5")).to_be_visible()
