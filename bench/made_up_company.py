"""The made-up company of `manage.py seed_demo` behind a real web process, for looking at pages and
measuring them."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from bench.installation import ROOT, WAIT_SECONDS, Installation

PUBLISH_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Site:
    """Where the pages are, and who may look at them: names and the cookies of their sessions."""

    address: str
    pid: int  # of the web process
    sessions: dict[str, str]
    cookie: str
    booking: int  # of the member, still to come


@contextmanager
def serving(**counts: int) -> Iterator[Site]:
    """A seeded installation that is removed at the end. `counts` are those of seed_demo."""
    port = free_port()
    web = f"http://127.0.0.1:{port}"
    installation = Installation(SLOTSERVE_WEB_URL=web, SLOTSERVE_WORKERS="1")
    stop = threading.Event()
    try:
        installation.migrate()
        sessions = fill(counts)
        keeper = threading.Thread(target=_keep_published, args=(stop,))
        keeper.start()
        server = start_web(port)
        try:
            until_answering(web)
            yield Site(web, server.pid, sessions, cookie_name(), coming_booking(sessions["member"]))
        finally:
            stop.set()
            server.terminate()
            server.wait(WAIT_SECONDS)
            keeper.join(WAIT_SECONDS)
    finally:
        installation.close()


def free_port() -> int:
    """One that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fill(counts: dict[str, int]) -> dict[str, str]:
    """The company and a session for each of two people. Django is set up now."""
    from django.test import Client  # noqa: PLC0415 - Django's settings are known only now

    from lanes.refusals import Refusal  # noqa: PLC0415
    from slotserve.demo.scale import Scale  # noqa: PLC0415
    from slotserve.demo.seeding import seed  # noqa: PLC0415

    company = seed(Scale(**counts), "")
    if isinstance(company, Refusal):
        raise SystemExit(company.words)
    settle()
    sessions = {}
    for role, person in (("administrator", company.administrator), ("member", company.members[0])):
        client = Client()
        client.force_login(person)
        sessions[role] = client.cookies[cookie_name()].value
    return sessions


def coming_booking(session: str) -> int:
    """The number of the next confirmed one of whoever this session is of."""
    from django.contrib.auth import SESSION_KEY  # noqa: PLC0415
    from django.contrib.sessions.backends.db import SessionStore  # noqa: PLC0415

    from bookings.models import Booking, State  # noqa: PLC0415
    from lanes import clock  # noqa: PLC0415

    found = Booking.objects.filter(owner=SessionStore(session)[SESSION_KEY], state=State.CONFIRMED)
    return found.filter(start__gt=clock.database_now()).order_by("start")[0].pk


def settle() -> None:
    """What beat and `bin/up` do after a while: static files, the route table."""
    from gateway.publish import publish  # noqa: PLC0415
    from slotserve.static_files import collect_if_changed  # noqa: PLC0415

    collect_if_changed()
    publish()


def cookie_name() -> str:
    """Of sessions."""
    from django.conf import settings  # noqa: PLC0415

    return str(settings.SESSION_COOKIE_NAME)


def _keep_published(stop: threading.Event) -> None:
    """As the beat does it; else pages say that nothing was planned."""
    from django.db import connections  # noqa: PLC0415

    from gateway.publish import publish  # noqa: PLC0415

    while not stop.wait(PUBLISH_SECONDS):
        publish()
    connections.close_all()


def start_web(
    port: int, application: str = "slotserve.asgi:application", **settings: str
) -> "subprocess.Popen[bytes]":
    """A web process as `bin/up` has it; `settings` are environment variables of its own."""
    argv = ["-m", "uvicorn", application, "--host", "127.0.0.1"]
    argv += ["--port", str(port), "--lifespan", "off", "--no-access-log", "--log-level", "warning"]
    argv += ["--http", "wire.http_protocol:GuardedProtocol", "--timeout-graceful-shutdown", "2"]
    return subprocess.Popen([sys.executable, *argv], cwd=ROOT, env={**os.environ, **settings})


def until_answering(address: str) -> None:
    """Wait for the web process; TimeoutError."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{address}/ready/").status_code < 500:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise TimeoutError("the web process does not answer")
