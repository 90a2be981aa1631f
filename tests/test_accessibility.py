"""axe-core finds nothing serious on any page: both themes, desk and phone."""

from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any, Literal

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Page
from pytest_django.live_server_helper import LiveServer

from tests import browser_pages, builders
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
Sight = tuple[Literal["light", "dark"], int, dict[str, Any]]
LOOKS: tuple[Sight, ...] = (
    ("light", DESK, ALL_RULES),
    ("dark", DESK, CONTRAST),
    ("light", PHONE, CONTRAST),
    ("dark", PHONE, ALL_RULES),
)
ONE_LOOK: tuple[Sight, ...] = (("dark", PHONE, ALL_RULES),)
# Pages with a form that refuses what is sent when nothing is filled in.
REFUSING = (
    "book account_login account_change_password account_email account_reauthenticate tokens "
    "new-lane new-preset add-host new-model-file new-model-folder new-policy invitations webhooks "
    "announcements groups admin:auth_user_add"
)
ADDRESSES = ("overview", "calendar", "bookings", "catalogue", "notices", "playground", "usage")
SEND_NOTHING = """() => {
  const forms = [...document.querySelectorAll("main form, #content form, #content-main form")];
  const form = forms.filter((form) => form.method === "post")
    .sort((one, other) => other.elements.length - one.elements.length)[0];
  for (const field of form.querySelectorAll("input, select, textarea")) {
    field.removeAttribute("required");
    if (["text", "number", "email", "password", "url", "datetime-local"].includes(field.type)
      || field.tagName === "TEXTAREA") field.value = "";
  }
  form.noValidate = true;
  HTMLFormElement.prototype.submit.call(form);
}"""
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


@pytest.fixture
def empty(chromium: Browser, live_server: LiveServer) -> Iterator[Windows]:
    """Windows on an installation without lanes."""
    with browser_pages.windows(chromium, live_server.url) as opened:
        yield opened


def findings(page: Page, address: str, looks: Sequence[Sight] = LOOKS) -> set[str]:
    """What is serious or critical on the page, with all that can be opened open."""
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": DESK, "height": 900})
    page.goto(address)
    return found_now(page, looks)


def found_now(page: Page, looks: Sequence[Sight]) -> set[str]:
    """The same on the page that is open."""
    page.evaluate(AXE)
    page.evaluate(OPEN_ALL)
    found = set()
    for scheme, width, rules in looks:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(IS_STILL)
        found |= {f"{scheme} {width}: {words}" for words in page.evaluate(FIND, rules)}
    return found


def told(found: dict[str, set[str]]) -> str:
    """Of all pages, a line each."""
    return "\n".join(f"{key}: {words}" for key, each in found.items() for words in sorted(each))


def looks_of(who: str) -> list[Look]:
    """The pages that this person looks at."""
    return [look for look in PAGES if look.who == who]


@pytest.mark.parametrize("who", [NOBODY, MEMBER, ADMINISTRATOR])
def test_nothing_serious_is_found_on_any_page(site: Site, windows: Windows, who: str) -> None:
    page = window_of(windows, site, who)
    found = {look.key: findings(page, site.address(look)) for look in looks_of(who)}
    assert not told(found)


def test_nor_in_german_nor_as_an_administrator_on_members_pages(
    site: Site, windows: Windows
) -> None:
    page = window_of(windows, site, ADMINISTRATOR, "de")
    looks = [look for look in PAGES if look.who != NOBODY and not look.name.startswith("admin:")]
    looks = [look for look in looks if look.who == ADMINISTRATOR or not is_of_one_person(look)]
    found = {look.key: findings(page, site.address(look), ONE_LOOK) for look in looks}
    assert page.locator("html").get_attribute("lang") == "de"
    assert not told(found)


def is_of_one_person(look: Look) -> bool:
    """Whether it shows how somebody logs in, which this administrator does otherwise."""
    return look.name.startswith(("account_", "mfa_"))


def test_nor_on_forms_that_refuse(site: Site, windows: Windows) -> None:
    found = {}
    for look in PAGES:
        if look.name in REFUSING.split() and not look.query:
            page = window_of(windows, site, look.who)
            page.goto(site.address(look))
            with page.expect_navigation():
                page.evaluate(SEND_NOTHING)
            said = page.locator(".is-invalid, .invalid-feedback, .errornote, [role=alert]")
            assert said.count(), look.key
            found[look.key] = found_now(page, ONE_LOOK)
            page.context.close()
    assert not told(found)


@pytest.mark.parametrize("is_staff", [False, True])
def test_nor_where_there_is_nothing_yet(empty: Windows, is_staff: bool) -> None:
    page = empty.open(builders.administrator() if is_staff else builders.person())
    lists = [look.name for look in PAGES if look.who == ADMINISTRATOR and not look.parts]
    names = [*ADDRESSES, *(name for name in lists if is_staff and not name.startswith("mfa_"))]
    found = {name: findings(page, reverse(name), ONE_LOOK) for name in names}
    assert not told(found)
