"""Every link that a page offers leads to a page that works, under the real policy of contents."""

from collections import Counter, deque
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import urlsplit

import pytest
from django.urls import Resolver404, resolve
from playwright.sync_api import Page, Request, Response

from tests import browser_pages
from tests.browser_pages import Windows
from tests.every_page import ADMINISTRATOR, MEMBER, NO_PAGES, NOBODY, PAGES, Site, window_of

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
MOST_OF_A_NAME = 2  # pages with the same URL name and other arguments
TELL_VIOLATIONS = """document.addEventListener("securitypolicyviolation", (event) =>
  console.error("policy", event.effectiveDirective, event.blockedURI, event.sample));"""
LINKS = "() => [...document.querySelectorAll('a[href]')].map((link) => link.href)"
# Forms that ask, as they are sent with what is chosen in them, and with a word to search for.
FORMS = """() => [...document.forms].filter((form) => form.method === "get").map((form) => {
  const to = new URL(form.action || location.href), told = new FormData(form);
  for (const field of form.querySelectorAll("input[type=search]")) told.set(field.name, "a");
  to.search = new URLSearchParams(told);
  return to.href;
})"""
AWAY = {"lane-log": 503}  # answered by a host's worker, which is not here
FILES = frozenset(" ".join(NO_PAGES.values()).split()) | {"schema"}


@dataclass
class Crawl:
    """One person's way through the site."""

    page: Page
    address: str
    wrong: list[str] = field(default_factory=list)
    opened: Counter[str] = field(default_factory=Counter)
    _seen: set[str] = field(default_factory=set)
    _next: deque[str] = field(default_factory=deque)

    def listen(self) -> None:
        """Note what the browser is told and complains of."""
        self.page.add_init_script(TELL_VIOLATIONS)
        self.page.on("response", self._answered)
        self.page.on("requestfailed", self._failed)

    def walk(self, starts: list[str], *, is_following: bool = True) -> None:
        """From these pages on."""
        for start in starts:
            self._add(start)
        while self._next:
            path = self._next.popleft()
            self._open(path)
            ways = self.page.evaluate(LINKS) + self.page.evaluate(FORMS) if is_following else ()
            for link in ways:
                if link.startswith(self.address):
                    self._add(link.removeprefix(self.address))

    def _add(self, path: str) -> None:
        path = path.partition("#")[0]
        try:
            found = resolve(urlsplit(path).path)
        except Resolver404:
            self.wrong.append(f"{self.page.url} leads to {path}, which is nothing")
            return
        name = ":".join([*found.namespaces, found.url_name or found.route])
        if path in self._seen or self.opened[name] >= MOST_OF_A_NAME:
            return
        self._seen.add(path)
        self.opened[name] += 1
        if name in FILES or name in AWAY:
            self._fetch(path, AWAY.get(name, HTTPStatus.OK))
        else:
            self._next.append(path)

    def _open(self, path: str) -> None:
        self.page.goto(path)
        self.page.wait_for_function("() => !document.querySelector('.htmx-request')")

    def _fetch(self, path: str, status: int) -> None:
        answer = self.page.request.get(path)
        if answer.status != status:
            self.wrong.append(f"{self.page.url} leads to {path}: {answer.status}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.wrong.append(f"{self.page.url}: {response.url} answers {response.status}")

    def _failed(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # left while it loaded
            self.wrong.append(f"{self.page.url}: {request.url} fails: {request.failure}")


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("who", [NOBODY, MEMBER, ADMINISTRATOR])
def test_every_page_and_link_works_without_complaint(
    site: Site, windows: Windows, who: str, language: str
) -> None:
    crawl = Crawl(window_of(windows, site, who, language), windows.address)
    crawl.listen()
    looks = [look for look in PAGES if look.who == who and look.status == HTTPStatus.OK]
    starts = [site.address(look) for look in looks]
    crawl.walk(starts, is_following=language == "en")
    assert crawl.page.locator("html").get_attribute("lang") == language
    assert crawl.wrong + windows.complaints == []
    assert len(crawl.opened) >= len({look.name for look in looks})
