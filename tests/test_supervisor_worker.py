"""The supervisor under a real Celery worker, without any beat: looks lead to further looks."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from celery import Celery
from django.core.management import call_command
from django.core.management.base import CommandError
from pytest_django import Settings

from bench.fake_llama_server import write_wrapper
from lanes import records, ticks
from lanes.models import Lane, Runtime
from lanes.worker_lock import living_worker
from slotserve.broker import celery_url
from tests import builders, fleet
from tests.worker import WORKER, celery, environment

pytest_plugins = ["tests.fleet_fixtures"]
pytestmark = [
    pytest.mark.process,
    pytest.mark.valkey,
    pytest.mark.django_db(transaction=True),
]
Work = Callable[[], object]
RunWorker = Callable[[], AbstractContextManager["subprocess.Popen[bytes]"]]


@pytest.fixture
def lane(fleet_settings: Settings, transactional_db: None) -> Lane:
    return builders.lane()


@pytest.fixture
def run_worker(lane: Lane, valkey: str, tmp_path: Path) -> RunWorker:
    """A context in which the host's worker runs."""
    program = write_wrapper(tmp_path / "llama-server")
    env = environment(tmp_path, valkey, SLOTSERVE_LLAMA_SERVER=str(program))
    queue = ticks.host_queue("test-host")
    return lambda: celery(*WORKER, "-Q", queue, env=env, log=tmp_path / "celery.log")


@pytest.fixture
def ask(lane: Lane, valkey: str) -> Iterator[Work]:
    """Ask the host for one look."""
    with Celery("asker", broker=celery_url(valkey), set_as_current=False) as app:
        queue = ticks.host_queue("test-host")
        yield lambda: app.send_task(ticks.LOOK_TASK, args=(lane.pk, "ss:tick:test"), queue=queue)
    ticks.valkey().close()


def test_one_look_leads_to_a_ready_server(lane: Lane, run_worker: RunWorker, ask: Work) -> None:
    fleet.order(lane, builders.preset())
    with run_worker():
        ask()
        fleet.until(fleet.is_phase(lane, "ready"))
        made = fleet.order(lane, None)
        ask()
        fleet.until(fleet.is_phase(lane, "stopped"))
    assert made.generation == 2
    assert not fleet.servers(lane.pk)


def test_its_servers_are_not_stopped_under_it(lane: Lane, run_worker: RunWorker, ask: Work) -> None:
    with run_worker() as worker:
        fleet.until(lambda: bool(living_worker()))
        assert living_worker() == str(worker.pid)
        with pytest.raises(CommandError, match="stop it first"):
            call_command("stop_servers")
    assert not living_worker()
    call_command("stop_servers")


def test_a_killed_server_is_seen_at_once(lane: Lane, run_worker: RunWorker, ask: Work) -> None:
    fleet.order(lane, builders.preset())
    with run_worker():
        ask()
        fleet.until(fleet.is_phase(lane, "ready"))
        first = fleet.newest(lane)
        assert first is not None
        assert first.pid is not None
        assert first.ready_at is not None
        Runtime.objects.update(ready_at=first.ready_at.replace(year=2020))
        fleet.kill(first.pid)
        fleet.until(lambda: Runtime.objects.filter(lane=lane).count() == 2)
        fleet.until(fleet.is_phase(lane, "ready"))
    assert len(fleet.servers(lane.pk)) == 1


def test_a_killed_workers_successor_adopts_its_server(
    lane: Lane, run_worker: RunWorker, ask: Work
) -> None:
    fleet.order(lane, builders.preset())
    with run_worker() as worker:
        ask()
        fleet.until(fleet.is_phase(lane, "ready"))
        worker.kill()
        worker.wait()
    adopted = fleet.servers(lane.pk)
    with run_worker():
        fleet.order(lane, None)
        ask()
        fleet.until(fleet.is_phase(lane, "stopped"))
    assert len(adopted) == 1
    assert not fleet.processes_of(records.installation_id())
