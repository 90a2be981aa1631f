"""Two real workers of one host on one queue: who is not the host takes no message of it."""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from celery import Celery
from django.db import OperationalError, connection, transaction
from pytest_django import Settings

from lanes import ticks
from lanes.models import HostReport
from tests import builders, fleet, log_world
from tests.worker import WORKER, celery, environment

pytestmark = [pytest.mark.process, pytest.mark.valkey, pytest.mark.django_db(transaction=True)]
SILENT = 5.0
QUEUE = ticks.host_queue("test-host")
TAKEN = "Received unregistered task of type 'slotserve.nobody'"  # logged by who takes it


class Workers:
    """Workers by name, each with a data folder of that name."""

    def __init__(self, folder: Path, valkey: str, running: ExitStack, asker: Celery) -> None:
        self._folder, self._valkey, self._running = folder, valkey, running
        self._asker = asker

    def start(self, name: str) -> "subprocess.Popen[bytes]":
        """Another process of it, with an empty log."""
        data = self._folder / name
        data.mkdir(exist_ok=True)
        self._log(name).unlink(missing_ok=True)
        env = environment(
            data, self._valkey, SLOTSERVE_HOST_SILENT_SECONDS=str(SILENT), NO_COLOR="1"
        )
        words = (*WORKER, "-Q", f"plan,{QUEUE}", "--loglevel", "INFO")
        return self._running.enter_context(celery(*words, env=env, log=self._log(name)))

    def send(self) -> None:
        """What beat asks of the host, and what shows who takes messages."""
        self._asker.send_task("slotserve.look_host", args=("test-host",), queue=QUEUE)
        self._asker.send_task("slotserve.nobody", queue=QUEUE)

    def says(self, name: str, words: str) -> int:
        """How often its log has these words."""
        log = self._log(name)
        return log.read_text().count(words) if log.exists() else 0

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"


@pytest.fixture
def workers(
    settings: Settings, tmp_path: Path, transactional_db: None, valkey: str
) -> Iterator[Workers]:
    settings.SLOTSERVE_HOST_KEY = "test-host"
    builders.lane(host=builders.host("test-host"))
    with log_world.asking(valkey) as asker, ExitStack() as running:
        yield Workers(tmp_path, valkey, running, asker)


def machine() -> str:
    return HostReport.objects.get().machine


def hold_up(process: "subprocess.Popen[bytes]") -> None:
    """SIGSTOP, between its transactions: nobody goes on while it keeps the database to itself."""
    for _ in range(20):
        process.send_signal(signal.SIGSTOP)
        if not is_database_held():
            return
        process.send_signal(signal.SIGCONT)
    raise TimeoutError("it has always begun a transaction")


def is_database_held() -> bool:
    """Whether somebody has begun a transaction and does not end it."""
    if connection.vendor == "sqlite":
        try:
            with transaction.atomic():  # waits in vain for 20 s
                return False
        except OperationalError:
            return True
    begun = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND xact_start < clock_timestamp() - interval '1 second'"
    )
    time.sleep(1.5)
    with connection.cursor() as cursor:
        cursor.execute(begun)
        return bool(cursor.fetchone()[0])


def is_taken(workers: Workers, name: str) -> None:
    """Wait until this worker takes a message."""
    before = workers.says(name, TAKEN)
    workers.send()
    fleet.until(lambda: workers.says(name, TAKEN) > before)


def test_the_second_takes_nothing_until_the_first_is_gone(workers: Workers) -> None:
    first = workers.start("first")
    is_taken(workers, "first")
    host = machine()
    workers.start("second")
    fleet.until(lambda: workers.says("second", "this worker waits") > 0)
    since = HostReport.objects.get().at
    while HostReport.objects.get().at < since + timedelta(seconds=2 * SILENT):
        is_taken(workers, "first")
        assert machine() == host
    # without beat, too, the first stays the host
    later = HostReport.objects.get().at + timedelta(seconds=2 * SILENT)
    fleet.until(lambda: HostReport.objects.get().at > later)
    assert machine() == host
    assert workers.says("second", TAKEN) == 0
    assert workers.says("second", "this worker waits") == 1
    first.kill()
    first.wait()
    is_taken(workers, "second")
    assert machine() != host
    workers.start("first")
    fleet.until(lambda: workers.says("first", "this worker waits") > 0)
    is_taken(workers, "second")
    assert workers.says("first", TAKEN) == 0


def test_a_worker_that_was_held_up_gives_way_to_who_took_its_place(workers: Workers) -> None:
    first = workers.start("first")
    is_taken(workers, "first")
    host = machine()
    workers.start("second")
    hold_up(first)
    try:
        fleet.until(lambda: machine() != host)
    finally:
        first.send_signal(signal.SIGCONT)
    fleet.until(lambda: workers.says("first", f"Canceling queue {QUEUE}") > 0)
    taken = workers.says("first", TAKEN)
    for _ in range(5):
        is_taken(workers, "second")
    assert workers.says("first", TAKEN) == taken


def test_a_worker_that_starts_again_does_not_wait(workers: Workers) -> None:
    first = workers.start("first")
    is_taken(workers, "first")
    first.kill()
    first.wait()
    workers.start("first")
    is_taken(workers, "first")
    assert workers.says("first", "waits") == 0
