"""Runs with logs on this test's host, and its worker: a thread that does what it is asked."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from celery import Celery
from django.conf import settings
from django.db import connection

from lanes import clock, log_keeping, tasks, ticks
from lanes.logs import RotatingLog
from lanes.models import Lane, Phase, Runtime
from slotserve.broker import celery_url
from tests import builders


def run(lane: Lane, **fields: Any) -> Runtime:
    """A run of a server on the lane; it lives, unless the fields say how it ended."""
    now = clock.database_now()
    revision = builders.preset().current
    assert revision is not None
    values = {"phase": Phase.READY, "phase_since": now, "started_at": now, "generation": 1}
    values |= {"address": "127.0.0.1", "port": 18100, "sealed_key": "-", "revision": revision}
    made = Runtime.objects.create(lane=lane, **{**values, **fields})
    made.log_path = str(log_keeping.folder_of(made))
    made.save()
    return made


def ended(lane: Lane, **fields: Any) -> Runtime:
    """A run that has ended."""
    return run(lane, **{"phase": Phase.STOPPED, "ended_at": clock.database_now(), **fields})


def log_of(made: Runtime) -> RotatingLog:
    """The run's log, as its shim has it open."""
    return RotatingLog(made.log_path, settings.SLOTSERVE_LOG_BYTES)


def write(made: Runtime, *chunks: bytes) -> None:
    """The whole of a run's log."""
    with log_of(made) as log:
        for chunk in chunks:
            log.write(chunk)


@contextmanager
def asking(url: str) -> Iterator[Celery]:
    """For this block messages of this process go to this Valkey; the app that sends them."""
    asker = Celery("asker", broker=celery_url(url), set_as_current=False)
    with pytest.MonkeyPatch.context() as patch, asker as app:
        patch.setattr(ticks, "current_app", app)
        yield app
    ticks.valkey().close()


class Worker:
    """The host's worker, as far as logs go: takes messages of its queue and counts them."""

    def __init__(self, url: str, key: str) -> None:
        self.done: list[tuple[int, int]] = []  # run and page of each fetch
        self._app = Celery("log-worker", broker=celery_url(url), set_as_current=False)
        self._queue = ticks.host_queue(key)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Begin to take messages."""
        self._thread.start()

    def stop(self) -> None:
        """Take none any more."""
        self._stopped.set()
        self._thread.join(60)
        self._app.close()

    def _work(self) -> None:
        with self._app.connection_for_read() as broker, broker.SimpleQueue(self._queue) as queue:
            while not self._stopped.is_set():
                try:
                    message = queue.get(timeout=0.05)
                except queue.Empty:
                    continue
                message.ack()
                (number, page, key), _named, _options = message.payload
                tasks.put_log_pages(number, page, key)
                self.done.append((number, page))
        connection.close()


@contextmanager
def worker(url: str, key: str = "test-host") -> Iterator[Worker]:
    """A worker for this block."""
    made = Worker(url, key)
    made.start()
    try:
        yield made
    finally:
        made.stop()
