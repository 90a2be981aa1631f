"""The made-up company on a live server, and windows of those who look at it."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from pytest_django.live_server_helper import LiveServer

from tests import browser_pages, every_page
from tests.browser_pages import Windows
from tests.every_page import Site


@pytest.fixture
def site(live_server: LiveServer) -> Site:
    """The made-up company."""
    return every_page.made()


@pytest.fixture
def windows(chromium: Browser, site: Site, live_server: LiveServer) -> Iterator[Windows]:
    """Windows on the live server."""
    with browser_pages.windows(chromium, live_server.url) as opened:
        yield opened
