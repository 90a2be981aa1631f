"""The playground with the whole product and the real demo model: asked, stopped, logged out."""

import json
import re
import sys
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from slotserve.stack.parts import ROOT
from tests import browser_pages as pages
from tests.running import Up, eventually

pytest_plugins = ["tests.browser_fixtures"]
pytestmark = [
    pytest.mark.story,
    pytest.mark.process,
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: pages in a browser (install chromium)"
    ),
]
PASSWORD = "a long password of the story"
FIRST_START_SECONDS = 300.0  # the demo model is fetched
MODEL_MS = 120_000  # until it is loaded and has written


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """bin/up on a fresh data folder."""
    data = tmp_path_factory.mktemp("playground") / "data"
    more = {"SLOTSERVE_VENV": sys.prefix, "SLOTSERVE_ADMIN_PASSWORD": PASSWORD}
    product = Up(data, sys.executable, str(ROOT / "bin" / "up"), **more)
    product.start().wait_for("SlotServe runs.", FIRST_START_SECONDS)
    yield product
    product.end()


@pytest.fixture(params=["127.0.0.1", "localhost"])
def page(request: pytest.FixtureRequest, chromium: Browser, up: Up) -> Iterator[Page]:
    """The administrator's playground, by either name of this machine."""
    with pages.windows(chromium, f"http://{request.param}:{up.ports[0]}") as windows:
        page = windows.open()
        page.context.add_cookies([{"name": "zone", "value": pages.ZONE, "url": windows.address}])
        page.goto("/playground/")
        page.get_by_label("User name").fill("admin")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in", exact=True).click()
        page.get_by_role("button", name="View code").wait_for()  # its programs run
        yield page


def test_the_real_model_streams_is_stopped_and_forgotten(page: Page, up: Up) -> None:
    keys: list[str] = []
    gateway = f":{up.ports[1]}/"
    page.on(
        "request",
        lambda asked: (
            keys.append(asked.headers["authorization"])
            if gateway in asked.url and asked.method == "POST"
            else None
        ),
    )
    page.get_by_label("Most tokens").fill("40")
    page.get_by_label("Your message").fill("Say one sentence about the sea.")
    page.keyboard.press("Enter")
    answer = page.locator(".turn-assistant .turn-text")
    expect(answer).to_contain_text(re.compile(r"\S"), timeout=MODEL_MS)
    figures = page.locator(".pane-figures")
    expect(figures).to_contain_text(re.compile(r"[\d.]+ tokens/s · \d+ tokens"), timeout=MODEL_MS)

    page.route(re.compile(f":{up.ports[1]}/"), without_an_end)
    page.get_by_label("Most tokens").fill("4000")
    page.get_by_label("Your message").fill("Tell a long story about a ship.")
    page.keyboard.press("Enter")
    expect(answer.nth(1)).to_contain_text(re.compile(r"\S"), timeout=MODEL_MS)
    page.keyboard.press("Escape")
    expect(page.locator(".turn-note").last).to_have_text("Stopped.")  # the first has all its tokens
    wait_until_idle(f"http://127.0.0.1:{up.ports[1]}/lanes/demo/slots", keys[-1])

    page.get_by_role("button", name="View code").click()
    expect(page.locator("#code-text-curl")).to_contain_text("/lanes/demo/v1/chat/completions")
    page.locator(".own-menu summary").click()
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("button", name="Log in", exact=True).wait_for()
    wait_until_refused(f"http://127.0.0.1:{up.ports[1]}/v1/models", keys[-1])


def without_an_end(route: Route) -> None:
    """Send the page's question on, asking the model to go on until it has all its tokens.

    Else a small model ends by itself, now and then before anybody can stop it.
    """
    request = route.request
    if request.method != "POST":
        route.continue_()
        return
    question: dict[str, object] = request.post_data_json or {}
    route.continue_(post_data=json.dumps({**question, "ignore_eos": True}))


def wait_until_idle(url: str, key: str) -> None:
    """The server writes no more, though it was asked for thousands of tokens."""

    def is_idle() -> bool:
        slots = client.get(url).json()
        return bool(slots) and not any(slot["is_processing"] for slot in slots)

    with httpx.Client(headers={"Authorization": key}, timeout=60) as client:
        eventually(is_idle, "the server has stopped")


def wait_until_refused(url: str, key: str) -> None:
    """The session's token is known no more."""
    with httpx.Client(headers={"Authorization": key}, timeout=60) as client:
        eventually(lambda: client.get(url).status_code == 401, "the token is refused")
