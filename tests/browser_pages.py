"""Pages in a real Chromium: members with a window each, and what the browser complained of."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright

from lanes import clock
from lanes.models import Lane, Order, Phase, Preset, Runtime
from tests import web_server

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESK, PHONE = 1400, 390  # pixels wide
ZONE = "Europe/Vienna"
WAIT_MS = 30_000
# What htmx writes when a page is left while a part of it is asked for; a server that is away
# is "htmx:sendError" besides.
LEFT = ("htmx:sendAbort", "htmx:afterRequest")


def chromium() -> str | None:
    """The program, if this machine has one."""
    return next((found for name in CHROMIUMS if (found := shutil.which(name))), None)


def launch(playwright: Playwright) -> Browser:
    """One Chromium without a window."""
    return playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))


class Windows:
    """Opens windows for members on one server, and collects what the browser complains of."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.browser = browser
        self.address = address
        self.complaints: list[str] = []

    def open(
        self,
        user: User | None = None,
        *,
        width: int = DESK,
        scheme: str = "light",
        zone: str = ZONE,
        is_touched: bool = False,
    ) -> Page:
        """A window with cookies of its own; logged in, when it is somebody's."""
        context = self.browser.new_context(
            base_url=self.address,
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
            timezone_id=zone,
            reduced_motion="reduce",
            has_touch=is_touched,
        )
        context.set_default_timeout(WAIT_MS)
        if user is not None:
            for name, value in (("zone", zone), _session(user)):
                context.add_cookies([{"name": name, "value": value, "url": self.address}])
        page = context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        return page

    def forgive(self, words: str) -> None:
        """Complaints with these words were expected: at least one, which is dropped. A browser
        may tell of an answer later than the page shows it."""
        deadline = time.monotonic() + WAIT_MS / 1000
        while not any(words in each for each in self.complaints) and time.monotonic() < deadline:
            self.browser.contexts[0].pages[0].wait_for_timeout(20)
        kept = [complaint for complaint in self.complaints if words not in complaint]
        assert len(kept) < len(self.complaints), f"no complaint of {words!r}: {self.complaints}"
        self.complaints = kept

    def _heard(self, message: ConsoleMessage) -> None:
        if message.text.startswith(LEFT):
            return
        if message.type in {"error", "warning"}:
            self.complaints.append(f"{message.text} ({message.location['url']})")


@contextmanager
def windows(browser: Browser, address: str) -> Iterator[Windows]:
    """Windows that are closed at the end."""
    opened = Windows(browser, address)
    try:
        yield opened
    finally:
        for context in browser.contexts:
            context.close()
        _until_nothing_is_answered()


def _until_nothing_is_answered() -> None:
    """The live server uses the database, which is emptied after the test."""
    deadline = time.monotonic() + WAIT_MS / 1000
    while any(server.is_answering for server in web_server.running):
        assert time.monotonic() < deadline, "the live server still answers somebody who has gone"
        time.sleep(0.02)


def _session(user: User) -> tuple[str, str]:
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    return name, client.cookies[name].value


def order(lane: Lane, wanted: Preset | None, sentence: str = "test", **fields: Any) -> Order:
    """The lane's next order, as a planner would write it."""
    now = clock.database_now()
    times = {"ordered_at": now, "decided_at": now}
    last = Order.objects.filter(lane=lane).values_list("generation", flat=True).first() or 0
    values = {"target": wanted.current if wanted else None, "generation": last + 1}
    defaults = {**times, **values, "sentence": sentence, **fields}
    return Order.objects.update_or_create(lane=lane, defaults=defaults)[0]


def runtime(lane: Lane, preset: Preset, phase: Phase, *, age: float = 0, **fields: Any) -> Runtime:
    """The lane's model server, as its host would report it; the one before is gone."""
    now = clock.database_now()
    Runtime.objects.filter(lane=lane, ended_at=None).update(ended_at=now, phase=Phase.STOPPED)
    assert preset.current is not None
    return Runtime.objects.create(
        lane=lane,
        revision=preset.current,
        generation=Order.objects.get(lane=lane).generation,
        phase=phase,
        phase_since=now,
        started_at=now - timedelta(seconds=age),
        address="127.0.0.1",
        port=18100,
        sealed_key="-",
        **fields,
    )


def picked(minutes: int) -> str:
    """So many minutes from now, as a date and time picker in the window's zone has it."""
    moment = clock.database_now() + timedelta(minutes=minutes)
    return moment.astimezone(ZoneInfo(ZONE)).strftime("%Y-%m-%dT%H:%M")
