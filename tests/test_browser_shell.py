"""Forms whose answers are cut off, or whose part is refreshed meanwhile, in a browser."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Route, expect
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
def lane(live_server: LiveServer) -> Lane:
    return builders.lane("demo", default_preset=builders.preset("small"))


@pytest.fixture
def windows(chromium: Browser, lane: Lane, live_server: LiveServer) -> Iterator[Windows]:
    with pages.windows(chromium, live_server.url) as opened:
        yield opened


def test_looking_at_a_series_books_nothing_when_its_answer_is_cut_off(windows: Windows) -> None:
    page = windows.open(builders.person("alice"))
    page.goto("/")
    page.get_by_role("article", name="demo").get_by_role("link", name="Book").click()
    form = page.get_by_role("dialog")
    form.get_by_text("Repeat this slot").click()
    form.get_by_label("Repeat", exact=True).select_option("daily")
    form.get_by_label("Or how many times").fill("3")
    cut: list[str] = []

    def cut_first(route: Route) -> None:
        if route.request.method == "POST" and not cut:
            cut.append(route.request.url)
            route.abort()
        else:
            route.fallback()

    page.route("**/book/", cut_first)
    form.get_by_role("button", name="Show every slot").click()
    expect(page.locator("#book-title")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="Free.")).to_have_count(3)
    assert cut
    assert not Booking.objects.exists()


def test_what_is_being_typed_outlives_a_refresh_of_its_part(windows: Windows, lane: Lane) -> None:
    start = clock.database_now() + timedelta(hours=1)
    booking = builders.booking(
        lane=lane, kind="gpu", preset=None, state=State.PENDING, start=start,
        owner=builders.person("ada"),
    )  # fmt: skip
    page = windows.open(builders.administrator())
    page.goto(f"/bookings/{booking.pk}/")
    comment = page.get_by_label("Comment (optional)")
    comment.fill("Please rel")
    with page.expect_response(lambda answer: answer.request.headers.get("hx-request") == "true"):
        page.evaluate("() => window.htmx.trigger(document.getElementById('live'), 'now')")
    page.wait_for_function("() => !document.querySelector('.htmx-request, .htmx-settling')")
    expect(comment).to_have_value("Please rel")
    expect(comment).to_be_focused()
