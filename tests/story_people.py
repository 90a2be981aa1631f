"""The whole product with its real demo model, and the people who look at it in a browser."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx
from playwright.sync_api import Cookie, Page, expect

from slotserve.stack.parts import ROOT
from tests import browser_pages as pages
from tests.browser_pages import Windows
from tests.running import Up, clean_environment, eventually

ADMIN, OWNER, OTHER = "admin", "owner", "other"
PASSWORD = "a long password of the story"
FIRST_START_SECONDS = 300.0  # the demo model is fetched
MODEL_SECONDS = 240.0  # until it is loaded and has written
MODEL_MS = MODEL_SECONDS * 1000
EVENTS = "/events/"
OPEN_STATES = ("confirmed", "pending", "held")
MAKE_MEMBERS = f"""
from django.contrib.auth.models import User
for name in ("{OWNER}", "{OTHER}"):
    User.objects.create_user(name, password="{PASSWORD}")
"""


@dataclass(slots=True)
class Stage:
    """A running product, an administrator's way to its REST, and who has logged in."""

    up: Up
    rest: httpx.Client
    tokens: dict[str, str]
    cookies: dict[str, list[Cookie]] = field(default_factory=dict)

    @property
    def web(self) -> str:
        """The pages' address."""
        return f"http://127.0.0.1:{self.up.ports[0]}"

    @property
    def gateway(self) -> str:
        """The gateway's address."""
        return f"http://127.0.0.1:{self.up.ports[1]}"

    def ask(self, path: str) -> Any:
        """What REST answers an administrator."""
        answer = self.rest.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def runs(self, preset: str) -> bool:
        """Whether the demo lane has this ready."""
        runtime = self.ask("lanes/demo/")["runtime"]
        return (runtime["phase"], runtime["preset"]) == ("ready", preset)

    def clear(self) -> None:
        """Give back what is booked, and wait until the lane has its default again."""
        for booking in self.ask("bookings/?limit=100")["results"]:
            if booking["state"] in OPEN_STATES:
                for deed in ("release", "cancel"):
                    self.rest.post(f"bookings/{booking['id']}/{deed}/")
        eventually(lambda: self.runs("smollm2"), "the default runs", MODEL_SECONDS)


class People:
    """Windows of people who log in as anybody does."""

    def __init__(self, stage: Stage, windows: Windows) -> None:
        self.stage = stage
        self.windows = windows

    def open(self, name: str, path: str = "/", *, width: int = pages.DESK) -> Page:
        """A window of this person's on a page."""
        page = self.windows.open(width=width)
        page.context.add_cookies(
            [{"name": "zone", "value": pages.ZONE, "url": self.windows.address}]
        )
        if name in self.stage.cookies:
            page.context.add_cookies(self.stage.cookies[name])  # type: ignore[arg-type]
        page.goto(path)
        if name not in self.stage.cookies:
            page.get_by_label("User name").fill(name)
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Log in", exact=True).click()
            expect(page.get_by_role("button", name="Log in", exact=True)).to_have_count(0)
            page.wait_for_load_state()  # its scripts have begun, its stream is asked for
            self.stage.cookies[name] = page.context.cookies()
        return page


def manage(up: Up, *arguments: str) -> str:
    """What `manage.py` of the running installation prints."""
    environment = clean_environment(SLOTSERVE_DATA=str(up.data))
    argv = [sys.executable, str(ROOT / "manage.py"), *arguments]
    return subprocess.run(argv, env=environment, check=True, capture_output=True, text=True).stdout


def outcome(program: str, token: str, *, is_python: bool) -> str:
    """What a snippet prints that somebody has pasted, with a token in the environment."""
    argv = [sys.executable, "-c"] if is_python else ["bash", "-euo", "pipefail", "-c"]
    environment = clean_environment(SLOTSERVE_TOKEN=token)
    run = partial(subprocess.run, capture_output=True, text=True, timeout=MODEL_SECONDS)
    done = run([*argv, program], env=environment)
    assert done.returncode == 0, f"{program}\n{done.stdout}\n{done.stderr}"
    return str(done.stdout)


def streams_of(page: Page) -> list[str]:
    """Grows by each connection that the page makes to the stream of events."""
    made: list[str] = []
    page.on("request", lambda asked: made.append(asked.url) if asked.url.endswith(EVENTS) else None)
    return made


def mark(page: Page) -> Callable[[], bool]:
    """Tells whether the page is still the one that it was: loaded once."""
    page.evaluate("window.isTheSame = true")
    return lambda: bool(page.evaluate("window.isTheSame === true"))
