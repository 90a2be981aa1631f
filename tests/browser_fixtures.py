"""One Chromium for the tests of a module."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests import browser_pages as pages


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Without windows; each has cookies of its own."""
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright keeps a loop in this thread, beside which Django would refuse its ORM.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        expect.set_options(timeout=pages.WAIT_MS)
        browser = pages.launch(playwright)
        yield browser
        browser.close()
