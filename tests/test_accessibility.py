"""axe-core finds nothing serious on any page: both themes, desk and phone."""

from importlib.resources import files
from typing import Any, Literal

import pytest
from playwright.sync_api import Page

from tests import browser_pages
from tests.browser_pages import DESK, PHONE, Windows
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
AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
ALL_RULES: dict[str, Any] = {}
CONTRAST = {"runOnly": ["color-contrast", "link-in-text-block"]}
LOOKS: tuple[tuple[Literal["light", "dark"], int, dict[str, Any]], ...] = (
    ("light", DESK, ALL_RULES),
    ("dark", DESK, CONTRAST),
    ("light", PHONE, CONTRAST),
    ("dark", PHONE, ALL_RULES),
)
OPEN_ALL = """() => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  for (const menu of document.querySelectorAll(".navbar-collapse")) menu.classList.add("show");
}"""
IS_STILL = """() => !document.querySelector(".htmx-request") && document.fonts.status == "loaded"
  && document.getAnimations().every((one) => one.playState != "running"
    || one.effect.getComputedTiming().iterations == Infinity)"""
FIND = """async (options) => (await axe.run(document, { resultTypes: ["violations"], ...options }))
  .violations.filter((found) => ["serious", "critical"].includes(found.impact))
  .flatMap((found) => found.nodes.map((node) => [found.id, node.target.join(" "),
    node.html.slice(0, 160), node.failureSummary.split("\\n")[1].trim()].join(" | ")))"""


def findings(page: Page, address: str) -> set[str]:
    """What is serious or critical on the page, with all that can be opened open."""
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": DESK, "height": 900})
    page.goto(address)
    page.evaluate(AXE)
    page.evaluate(OPEN_ALL)
    found = set()
    for scheme, width, rules in LOOKS:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(IS_STILL)
        found |= {f"{scheme} {width}: {words}" for words in page.evaluate(FIND, rules)}
    return found


def looks_of(who: str) -> list[Look]:
    """The pages that this person looks at."""
    return [look for look in PAGES if look.who == who]


@pytest.mark.parametrize("who", [NOBODY, MEMBER, ADMINISTRATOR])
def test_nothing_serious_is_found_on_any_page(site: Site, windows: Windows, who: str) -> None:
    page = window_of(windows, site, who)
    found = {look.key: findings(page, site.address(look)) for look in looks_of(who)}
    lines = [f"{key}: {words}" for key, each in found.items() for words in sorted(each)]
    assert not lines, "\n".join(lines)
