"""Lanes with a real model for measurements: the demo model, its servers' command lines, a client.

Imported once an `Installation` is open.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import httpx
from django.contrib.auth.models import User

from bench.installation import HOST_KEY
from gateway import tokens
from lanes.demo import ensure_demo
from lanes.demo_model import fetch_demo_model
from lanes.models import Host, Lane, Preset, Runtime
from lanes.refusals import Refusal
from lanes.services import register_host

WAIT_SECONDS = 120.0
POLL_SECONDS = 0.005
MODEL_FOLDER = Path.home() / ".cache" / "slotserve-tests"
QUESTION = [{"role": "user", "content": "Say hello."}]


@dataclass(frozen=True, slots=True)
class Models:
    """The demo lane with two presets of one file, and an administrator with a token."""

    lane: Lane
    presets: tuple[Preset, Preset]
    administrator: User
    token: str


@dataclass(frozen=True, slots=True)
class Command:
    """How a model server was started: what a bare start repeats on another port."""

    argv: tuple[str, ...]
    environment: dict[str, str]

    @classmethod
    def of(cls, pid: int) -> "Command":
        """The command line and environment of a living process."""
        argv = Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")
        pairs = Path(f"/proc/{pid}/environ").read_text().rstrip("\0").split("\0")
        marks = ("SLOTSERVE_INSTALLATION", "SLOTSERVE_LANE")  # by these a sweep would end it
        named = dict(pair.split("=", 1) for pair in pairs)
        return cls(tuple(argv), {k: v for k, v in named.items() if k not in marks})

    def load_seconds(self) -> float:
        """Seconds from a bare start to /health 200. The server is ended again."""
        port = _free_port()
        argv = list(self.argv)
        argv[argv.index("--port") + 1] = str(port)
        began = time.monotonic()
        quiet = subprocess.DEVNULL
        with subprocess.Popen(argv, env=self.environment, stdout=quiet, stderr=quiet) as process:
            try:
                url = f"http://127.0.0.1:{port}/health"
                with httpx.Client(trust_env=False, timeout=1.0) as client:
                    wait_for(lambda: is_healthy(client, url), "a bare start")
                return time.monotonic() - began
            finally:
                process.kill()

    @property
    def program(self) -> str:
        """For people."""
        return "the built-in runner" if "lanes.llama_runner" in self.argv else self.argv[0]


def set_up() -> Models:
    """This host, the demo lane, an administrator with a token."""
    host = register_host(HOST_KEY, HOST_KEY)
    assert isinstance(host, Host), host
    folder = Path(os.environ.get("SLOTSERVE_TEST_MODEL_DIR") or MODEL_FOLDER)
    lane = ensure_demo(host, fetch_demo_model(folder))
    assert not isinstance(lane, Refusal), lane
    first, second = Preset.objects.order_by("pk")[:2]
    user = User.objects.create(username="admin", is_staff=True)
    made = tokens.create_token(
        owner=user, name="bench", scopes=["inference"], lanes=[], expires_at=None
    )
    assert isinstance(made, tuple), made
    return Models(lane, (first, second), user, made[1])


def serving(lane: Lane) -> Runtime | None:
    """The lane's server, if it is ready and its process known."""
    ready = Runtime.objects.filter(lane=lane, ended_at=None, phase="ready", pid__isnull=False)
    return ready.select_related("revision").first()


def first_token(client: httpx.Client, lane: Lane, model: str, token: str) -> None:
    """Ask until the lane serves this model; return at the first piece of text."""
    wait_for(lambda: _has_answered(client, lane, model, token), f"an answer of {model}")


def _has_answered(client: httpx.Client, lane: Lane, model: str, token: str) -> bool:
    """Whether a piece of text came. A load is waited for; before it is ordered it is refused."""
    wish = {"model": model, "stream": True, "max_tokens": 4, "messages": QUESTION}
    headers = {"Authorization": f"Bearer {token}", "Prefer": "wait=100"}
    url = f"/lanes/{lane.slug}/v1/chat/completions"
    with client.stream("POST", url, json=wish, headers=headers) as answer:
        is_served = answer.status_code == httpx.codes.OK
        return is_served and any(_text(line) for line in answer.iter_lines())


def wait_for(condition: Callable[[], bool], what: str, poll: float = POLL_SECONDS) -> None:
    """Poll until it is so."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"not within {WAIT_SECONDS:g} s: {what}")
        time.sleep(poll)


def shown(seconds: Iterable[float]) -> str:
    """Milliseconds, for people."""
    return " ".join(f"{one * 1000:.0f}" for one in seconds)


def _text(line: str) -> str:
    """The piece of text in one line of a stream."""
    if not line.startswith("data: {"):
        return ""
    event = json.loads(line.removeprefix("data: "))
    choices = event.get("choices") or [{}]
    return str(choices[0].get("delta", {}).get("content") or "")


def is_healthy(client: httpx.Client, url: str) -> bool:
    """Whether it answers 200."""
    try:
        return client.get(url).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port
