"""Usage in a real Chromium: charts from the tables, in both themes, on a phone, without a word."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from gateway.models import UsageDay
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
# Whether a chart has a dot of nearly this colour: red, green, blue.
HAS_COLOUR = """([name, wanted]) => {
  const canvas = document.querySelector(`[data-chart="${name}"] canvas`);
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  for (let at = 0; at < data.length; at += 4) {
    const isNear = (part, place) => Math.abs(part - data[at + place]) < 40;
    if (data[at + 3] > 200 && wanted.every(isNear)) return true;
  }
  return false;
}"""
# Where the dots of a colour lie on average, as a part of the chart's width.
BAR_MIDDLE = """([name, wanted]) => {
  const canvas = document.querySelector(`[data-chart="${name}"] canvas`);
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const found = [];
  for (let at = 0; at < data.length; at += 4) {
    const isNear = (part, place) => Math.abs(part - data[at + place]) < 40;
    if (wanted.every(isNear)) found.push((at / 4) % canvas.width);
  }
  return found.reduce((sum, x) => sum + x, 0) / found.length / canvas.width;
}"""
GREEN, BLACK = [47, 179, 68], [0, 0, 0]


@pytest.fixture
def windows(chromium: Browser, live_server: LiveServer) -> Iterator[Windows]:
    """Alice has used some of yesterday and a week ago."""
    alice = builders.person("alice")
    for ago in (1, 7):
        UsageDay.objects.create(
            day=(timezone.now() - timedelta(days=ago)).date(),
            owner_id_for=alice.pk,
            owner_name="alice",
            lane_name="fast",
            preset="qwen",
            used_seconds=7200,
            idle_seconds=3600,
            requests=1234,
            completion_tokens=4000,
        )
    with pages.windows(chromium, live_server.url) as opened:
        yield opened
    assert opened.complaints == []


def test_charts_are_drawn_from_their_tables_in_the_theme(windows: Windows) -> None:
    page = windows.open(builders.person("alice"), scheme="dark")
    page.goto("/usage/")
    chart = page.get_by_role("img", name="Booked hours of each day; the table says the same.")
    expect(chart.locator("canvas")).to_have_count(1)
    assert page.evaluate(HAS_COLOUR, ["hours-table", GREEN])
    assert not page.evaluate(HAS_COLOUR, ["hours-table", BLACK])  # words that nobody could read
    windows.forgive("willReadFrequently")  # of this test
    page.get_by_role("button", name="Switch between light and dark").click()
    expect(chart.locator("canvas")).to_have_count(1)
    assert page.evaluate(HAS_COLOUR, ["hours-table", GREEN])
    expect(page.get_by_role("group", name="Hours a day").locator("tbody tr")).to_have_count(2)
    expect(page.get_by_role("group", name="By Lane").get_by_role("row")).to_contain_text(
        ["Lane", "fast"]
    )


def test_the_bar_of_a_single_day_stands_in_the_middle(windows: Windows) -> None:
    # Not at the edge of an axis of years: it is all that a new installation has.
    yesterday = (timezone.now() - timedelta(days=1)).date().isoformat()
    page = windows.open(builders.person("alice"))
    page.goto(f"/usage/?from={yesterday}&to={yesterday}")
    expect(page.locator("canvas")).to_have_count(2)
    assert page.evaluate(BAR_MIDDLE, ["hours-table", GREEN]) == pytest.approx(0.5, abs=0.1)


def test_a_filter_is_chosen_and_a_file_downloaded(windows: Windows) -> None:
    page = windows.open(builders.person("alice"))
    page.goto("/usage/")
    page.get_by_label("Divided by").select_option("preset")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("heading", name="By Preset")).to_be_visible()
    link = page.get_by_role("link", name="Download as CSV")
    query = page.url.partition("?")[2]
    expect(link).to_have_attribute("href", f"/usage/export.csv?{query}")


def test_on_a_phone_only_tables_scroll_sideways(windows: Windows) -> None:
    page = windows.open(builders.person("alice"), width=PHONE)
    page.goto("/usage/")
    expect(page.locator("canvas")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE
