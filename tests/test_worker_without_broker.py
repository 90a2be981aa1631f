"""A worker that loses its broker goes on when it is back, whatever it had taken and not begun."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery
from pytest_django import Settings

from lanes import ticks
from slotserve.broker import celery_url
from tests import builders, fleet
from tests.conftest import ValkeyServer
from tests.worker import WORKER, celery, environment

pytest_plugins = ["tests.fleet_fixtures"]
pytestmark = [
    pytest.mark.process,
    pytest.mark.valkey,
    pytest.mark.django_db(transaction=True),
]
UNACKED = "unacked"  # where kombu keeps what a worker has taken and not yet begun
TAKEN_UP = "ss:tick:test"  # a tick that has begun deletes its key


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "celery.log"


@pytest.fixture
def worker(
    fleet_settings: Settings, valkey: str, tmp_path: Path, log: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """The host's worker."""
    env = environment(tmp_path, valkey)
    queue = ticks.host_queue("test-host")
    with celery(*WORKER, "-Q", queue, "--loglevel", "INFO", env=env, log=log) as process:
        yield process
    ticks.valkey().close()


def ask(url: str, delay: float = 0.0) -> None:
    """Have the worker look at a lane that is not there."""
    with Celery("asker", broker=celery_url(url), set_as_current=False) as app:
        queue = ticks.host_queue("test-host")
        app.send_task(ticks.LOOK_TASK, args=(0, TAKEN_UP), queue=queue, countdown=delay or None)


def test_a_worker_with_a_tick_for_later_outlives_its_broker(
    worker: "subprocess.Popen[bytes]", valkey: str, valkey_server: ValkeyServer, log: Path
) -> None:
    builders.host()
    ask(valkey, delay=60)
    fleet.until(lambda: ticks.valkey().hlen(UNACKED) == 1)
    valkey_server.stop()
    fleet.until(lambda: "Connection to broker lost" in log.read_text())
    valkey_server.start()
    ticks.valkey().set(TAKEN_UP, "1")
    ask(valkey)
    fleet.until(lambda: not ticks.valkey().exists(TAKEN_UP))
    assert worker.poll() is None
    for unwanted in ("Traceback", "DeprecationWarning", "Unrecoverable"):
        assert unwanted not in log.read_text()
