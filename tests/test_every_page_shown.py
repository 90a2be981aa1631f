"""Every page in a browser, in both languages: it fits a phone, and speaks one language."""

import pytest
from playwright.sync_api import Page

from bookings.models import Booking
from lanes.models import Notice
from slotserve.settings import LANGUAGES
from tests import browser_pages, mixed_language
from tests.browser_pages import PHONE, Windows
from tests.every_page import ADMINISTRATOR, MEMBER, NOBODY, PAGES, Site, window_of

pytest_plugins = ["tests.browser_fixtures", "tests.site_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    # A page that is left while it loads leaves files that nobody takes, closed when collected.
    pytest.mark.filterwarnings("ignore:.*FileIO:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.skipif(
        browser_pages.chromium() is None,
        reason="NOT TESTED HERE: pages in a browser (install chromium)",
    ),
]
WIDTH = "document.documentElement.scrollWidth"
HEIGHT = 900


def texts_by_page(site: Site, windows: Windows, who: str, language: str) -> dict[str, set[str]]:
    """What this person reads on each page, at the width of a phone, which none exceeds."""
    page, told = window_of(windows, site, who, language), {}
    page.set_viewport_size({"width": PHONE, "height": HEIGHT})
    for look in (look for look in PAGES if look.who == who):
        page.goto(site.address(look))
        assert page.evaluate(WIDTH) <= PHONE, (look.key, language)
        if not look.name.startswith("admin:") and _language(page) == language:
            told[look.key] = set(page.evaluate(mixed_language.READ))
    return told


def _language(page: Page) -> str:
    """A link of a mail speaks its reader's own language, whatever the browser asks for."""
    return page.locator("html").get_attribute("lang") or ""


def written_by_people() -> str:
    """Texts of the company's members, which nobody translates."""
    notices = Notice.objects.values_list("sentence", flat=True)
    return "\n".join([*Booking.objects.values_list("purpose", flat=True), *notices, *SAID])


SAID = (
    "Maintenance on Friday.",
    "Friday 18:00 to 20:00: new switches in the server room; slots may be interrupted.",
)


@pytest.mark.parametrize("who", [NOBODY, MEMBER, ADMINISTRATOR])
def test_pages_fit_a_phone_and_german_ones_are_german(
    site: Site, windows: Windows, who: str
) -> None:
    german = texts_by_page(site, windows, who, "de")
    english = texts_by_page(site, windows, who, "en")
    names, people = {name for _, name in LANGUAGES}, written_by_people()
    left = []
    for key, texts in german.items():
        same = {text for text in texts & english[key] if mixed_language.is_sentence(text)}
        found = (mixed_language.english().among(texts) | same) - names
        left += [f"{key}: {text}" for text in sorted(found) if text.strip("· ") not in people]
    assert left == []


def test_english_is_found() -> None:
    english = mixed_language.english()
    assert english.among(["Log out", "Abmelden", "demo", "2 bookings wait"]) == {
        "Log out",
        "2 bookings wait",
    }
    assert mixed_language.is_sentence("The link works once, for you alone.")
    assert not mixed_language.is_sentence("Der Link gilt einmal")
