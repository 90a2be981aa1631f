"""Names, reasons, log lines and answers with markup in them are shown as the texts they are."""

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from lanes import clock
from lanes.models import Notice
from lanes.notices import News, tell_people
from notices.mail import message_of
from slotserve.stack.parts import ROOT
from tests import audiences, browser_pages, every_page, planted
from tests.browser_pages import Windows
from tests.every_page import ADMINISTRATOR, MEMBER, NO_PAGES, PAGES, Site, window_of
from wire.words import said

pytest_plugins = ["tests.browser_fixtures", "tests.site_fixtures"]
RAW = f"<{planted.TAG}"
# What is written in scripts of ours, and may be: a page's part as the server made it.
KNOWN = {"calendar_moves.js": 1}
MADE_BY_TEXT = re.compile(
    r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|document\.write|setHTMLUnsafe|srcdoc|eval)\b"
)
# Where scripts of ours put texts into the page, and what opens it.
BUILT = {"overview", "calendar", "lane", "log", "book", "playground", "usage", "notices", "booking"}


def with_markup(site: Site) -> Site:
    """In each text of it, and in a notice of somebody."""
    news = News("failed", "failed:1", said("{lane} failed", lane="x"), said("try {it}", it="x"))
    tell_people(User.objects.all(), news, clock.database_now())
    columns = planted.plant()
    assert len(columns) > 50
    assert {"lanes.ModelFile.name", "lanes.Runtime.failure_line", "lanes.LaneEvent.words"} < columns
    assert {"notices.Delivery.reason", "lanes.Host.name", "lanes.Notice.words"} < columns
    return site


@pytest.mark.django_db
def test_no_page_or_part_of_one_has_it_as_markup() -> None:
    site = with_markup(every_page.made())
    parts = [audiences.address(site, name) for name in NO_PAGES["a part of a page"].split()]
    paths = [site.address(look) for look in PAGES] + parts
    shown, raw = set(), set()
    for who in (MEMBER, ADMINISTRATOR):
        for path in paths:
            text = site.clients[who].get(path).content.decode()
            shown |= {path} if planted.TAG in text else set()
            raw |= {path} if RAW in text else set()
    assert raw == set()
    assert len(shown) > 80


@pytest.mark.django_db
def test_no_mail_has_it_as_markup_and_the_plain_text_has_it_as_it_is() -> None:
    with_markup(every_page.made())
    for notice in Notice.objects.all():
        message = message_of(notice)
        (html,) = (str(content) for content, _ in message.alternatives)
        assert RAW not in html
        assert planted.TAG in html
        assert RAW in str(message.body)
        assert "\n" not in message.subject


def test_scripts_make_no_markup_of_texts() -> None:
    found = {
        path.name: len(hits)
        for path in Path(ROOT / "static/slotserve").glob("*.js")
        if (hits := MADE_BY_TEXT.findall(path.read_text()))
    }
    assert found == KNOWN


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(browser_pages.chromium() is None, reason="NOT TESTED HERE: install chromium")
def test_no_script_makes_markup_of_it(site: Site, windows: Windows) -> None:
    with_markup(site)
    page = window_of(windows, site, ADMINISTRATOR)
    for look in (look for look in PAGES if look.name in BUILT):
        page.goto(site.address(look))
        page.wait_for_function("() => !document.querySelector('.htmx-request')")
        page.wait_for_function("(tag) => document.body.textContent.includes(tag)", arg=planted.TAG)
        assert page.locator(planted.TAG).count() == 0, look.key
    assert windows.complaints == []
