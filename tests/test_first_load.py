"""What a browser that comes for the first time must fetch, and what holds it up."""

import gzip
import re
from dataclasses import dataclass

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from slotserve.demo.scale import Scale
from tests import every_page
from tests.every_page import PAGES, Site

pytestmark = pytest.mark.django_db
MOST_BYTES = 250_000
MOST_HTML = 80_000  # as it is; a month of the calendar has the most
MOST_FILES = 16
BLOCKING_SCRIPT = "slotserve/slotserve.js"  # sets the theme before anything is drawn
LATE_SCRIPTS = ("account/js/", "mfa/js/")  # allauth's, at the end of its pages
MOST_STYLES = 4
OWN = [look for look in PAGES if not look.name.startswith("admin:")]


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one page makes a browser fetch."""

    html: str
    files: frozenset[str]

    @property
    def bytes(self) -> int:
        """Compressed as WhiteNoise does it when static files are collected; HTML as it is."""
        return len(self.html.encode()) + sum(_compressed(name) for name in self.files)


def _compressed(name: str) -> int:
    path = finders.find(name)
    assert isinstance(path, str), name
    with open(path, "rb") as file:
        return len(gzip.compress(file.read(), compresslevel=9))


def fetched(client: Client, address: str) -> Fetched:
    """The page and the files that it names."""
    html = client.get(address).content.decode()
    names = re.findall(r'(?:src|href)="/static/([^"?#]+)"', html)
    return Fetched(html, frozenset(names))


@pytest.fixture
def site() -> Site:
    """The made-up company, with a dozen lanes."""
    return every_page.made(Scale(lanes=12, members=12, bookings=120, requests=2))


def test_every_page_stays_within_its_budget(site: Site) -> None:
    over = {}
    for look in OWN:
        page = fetched(site.clients[look.who], site.address(look))
        figures = (page.bytes, len(page.html), len(page.files))
        limits = (MOST_BYTES, MOST_HTML, MOST_FILES)
        if any(each > most for each, most in zip(figures, limits, strict=True)):
            over[look.key] = figures
    assert over == {}


def test_nothing_but_the_known_keeps_a_page_from_being_drawn(site: Site) -> None:
    for look in OWN:
        html = fetched(site.clients[look.who], site.address(look)).html
        scripts = re.findall(r"<script([^>]*)>", html)
        blocking = {name for each in scripts if "defer" not in each for name in _names(each)}
        late = {name for name in blocking if name.startswith(LATE_SCRIPTS)}
        assert blocking - late <= {BLOCKING_SCRIPT}, look.key
        assert html.count('rel="stylesheet"') <= MOST_STYLES, look.key


def test_pictures_say_how_large_they_are(site: Site) -> None:
    for look in OWN:
        html = fetched(site.clients[look.who], site.address(look)).html
        for picture in re.findall(r"<img[^>]*>", html):
            assert "width=" in picture, (look.key, picture[:80])
            assert "height=" in picture, (look.key, picture[:80])
            assert "alt=" in picture, (look.key, picture[:80])


def _names(attributes: str) -> list[str]:
    return re.findall(r'src="/static/([^"?#]+)"', attributes)
