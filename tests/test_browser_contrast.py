"""Parts that Tabler shows with too little contrast, as pages show them: WCAG asks for 4.5 to 1."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from pytest_django.live_server_helper import LiveServer

from tests import browser_pages as pages
from tests import builders
from tests.browser_pages import Windows

pytest_plugins = ["tests.browser_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: pages in a browser (install chromium)"
    ),
]
LEAST = 4.5
# A background may be of what is around; a canvas knows every way to write a colour.
CONTRAST = """(name) => {
  const part = document.createElement("span");
  part.className = name;
  part.textContent = "Words";
  document.querySelector("main").prepend(part);
  part.getAnimations().forEach((one) => one.finish());
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const pixel = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const isSeenThrough = (one) => pixel(getComputedStyle(one).backgroundColor)[3] < 255;
  let behind = part;
  while (behind.parentElement && isSeenThrough(behind)) behind = behind.parentElement;
  const light = (colour) => pixel(colour).slice(0, 3).map((byte) => byte / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const found = [getComputedStyle(part).color, getComputedStyle(behind).backgroundColor].map(light);
  part.remove();
  return (Math.max(...found) + 0.05) / (Math.min(...found) + 0.05);
}"""


@pytest.fixture
def windows(chromium: Browser, live_server: LiveServer) -> Iterator[Windows]:
    with pages.windows(chromium, live_server.url) as opened:
        yield opened


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_links_as_buttons_and_pressed_buttons_can_be_read(windows: Windows, scheme: str) -> None:
    page = windows.open(builders.person("alice"), scheme=scheme)
    page.goto("/tokens/")
    found = {
        name: page.evaluate(CONTRAST, f"btn {name}")
        for name in ("btn-link", "active", "btn-sm active")
    }
    assert min(found.values()) >= LEAST, found


COLOURS = ("red", "yellow", "green", "blue", "azure", "secondary")
TOLD = (
    "badge bg-red text-red-fg",
    "badge bg-yellow text-yellow-fg",
    *(f"badge bg-{colour}-lt" for colour in COLOURS),
    *(f"alert alert-{level}" for level in ("danger", "warning", "info", "success")),
    "connection",
    "text-success",
    "text-danger",
    "text-secondary",
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_badges_alerts_and_coloured_words_can_be_read(windows: Windows, scheme: str) -> None:
    page = windows.open(builders.person("alice"), scheme=scheme)
    page.goto("/tokens/")
    found = {name: page.evaluate(CONTRAST, name) for name in TOLD}
    assert min(found.values()) >= LEAST, found
