"""What a first visit costs in a real browser: what it fetches, what holds it up, what moves."""

import gzip
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Response

from tests import browser_pages
from tests.browser_pages import Windows
from tests.every_page import ADMINISTRATOR, MEMBER, NOBODY, PAGES, Look, Site, window_of

pytest_plugins = ["tests.browser_fixtures", "tests.site_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        browser_pages.chromium() is None,
        reason="NOT TESTED HERE: pages in a browser (install chromium)",
    ),
]
MOST_BYTES, MOST_REQUESTS = 250_000, 22
MOST_ELEMENTS, DEEPEST = 1500, 32  # as Lighthouse has it
MOST_SHIFT = 0.1  # a good cumulative layout shift by the definition of Web Vitals
MAY_BLOCK = ("slotserve/slotserve.js", ".css")
MAIN = {
    *("overview", "lane", "book", "calendar", "booking", "bookings", "catalogue", "preset"),
    *("notices", "preferences", "playground", "usage", "tokens", "administration", "approvals"),
    *("account_login", "hosts", "members", "audit"),
}
SHIFTS = """window.moved = 0; new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.moved += one.value;
}).observe({ type: "layout-shift", buffered: true });"""
LOOK = """() => {
  const depth = (one) => 1 + Math.max(0, ...[...one.children].map(depth));
  const fetched = performance.getEntriesByType("resource");
  return {
    shift: window.moved,
    elements: document.querySelectorAll("*").length,
    depth: depth(document.documentElement),
    blocking: fetched.filter((one) => one.renderBlockingStatus == "blocking")
      .map((one) => one.name),
    lang: document.documentElement.lang,
    title: document.title,
    viewport: (document.querySelector("meta[name=viewport]") || {}).content || "",
    charset: document.characterSet,
    nameless: [...document.images].filter((one) => !one.hasAttribute("alt")).length,
    sizeless: [...document.images].filter((one) => !one.width || !one.height).length,
  };
}"""
IS_STILL = """() => document.readyState == "complete" && document.fonts.status == "loaded"
  && !document.querySelector(".htmx-request")"""


@dataclass
class Visit:
    """What one page made the browser fetch, and what it found there."""

    bytes: int
    requests: int
    found: dict[str, Any]

    def wrong(self) -> dict[str, object]:
        """What is beyond the budget, or missing."""
        found = self.found
        blocking = [name for name in found["blocking"] if not name.endswith(MAY_BLOCK)]
        limits = {
            "bytes": (self.bytes, MOST_BYTES),
            "requests": (self.requests, MOST_REQUESTS),
            "elements": (found["elements"], MOST_ELEMENTS),
            "depth": (found["depth"], DEEPEST),
            "shift": (found["shift"], MOST_SHIFT),
            "blocking": (len(blocking), 0),
            "nameless pictures": (found["nameless"], 0),
            "pictures without a size": (found["sizeless"], 0),
        }
        over: dict[str, object] = {name: a for name, (a, most) in limits.items() if a > most}
        is_zooming = (
            "user-scalable" not in found["viewport"] and "width=device" in found["viewport"]
        )
        said = (
            found["lang"] == "en",
            bool(found["title"]),
            found["charset"] == "UTF-8",
            is_zooming,
        )
        return over if all(said) else over | {"head": found}


def visit(windows: Windows, site: Site, look: Look) -> Visit:
    """A first visit, with an empty cache."""
    page = window_of(windows, site, look.who)
    answers: list[Response] = []

    def note(answer: Response) -> None:  # playwright takes no built-in function
        answers.append(answer)

    page.on("response", note)
    page.add_init_script(SHIFTS)
    page.goto(site.address(look))
    page.wait_for_function(IS_STILL)
    found = page.evaluate(LOOK)
    sizes = [_sent(each) for each in answers if "/events/" not in each.url]
    page.context.close()
    return Visit(sum(sizes), len(sizes), found)


def _sent(answer: Response) -> int:
    """Bytes on the way: files are compressed, as WhiteNoise does when they are collected; pages,
    which hold secrets, are not."""
    body = answer.body() if answer.ok else b""
    return len(gzip.compress(body, 9)) if "/static/" in answer.url else len(body)


@pytest.mark.parametrize("who", [NOBODY, MEMBER, ADMINISTRATOR])
def test_first_visits_stay_within_the_budget(site: Site, windows: Windows, who: str) -> None:
    looks = [look for look in PAGES if look.who == who and look.name in MAIN]
    visits = {look.key: visit(windows, site, look) for look in looks}
    assert {key: wrong for key, each in visits.items() if (wrong := each.wrong())} == {}
