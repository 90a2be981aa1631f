"""A real server's log through its host's worker, a process, as another machine's web gets it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from bench.fake_llama_server import write_wrapper
from lanes import ticks
from lanes.log_reading import Piece, fetch
from lanes.models import Lane, Runtime
from tests import builders, fleet, log_world
from tests.worker import WORKER, celery, environment

pytest_plugins = ["tests.fleet_fixtures"]
pytestmark = [pytest.mark.process, pytest.mark.valkey, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def lane(fleet_settings: Settings, transactional_db: None, valkey: str) -> Iterator[Lane]:
    with log_world.asking(valkey):
        yield builders.lane()


def told(lane: Lane, run: Runtime) -> Piece | None:
    """The newest lines, if the host has answered."""
    found = fetch(lane, run)
    return found if isinstance(found, Piece) else None


def order(lane: Lane, *, is_wanted: bool) -> None:
    """Give an order and ask for looks, as beat does, until it is followed."""
    fleet.order(lane, builders.preset() if is_wanted else None)
    is_followed = fleet.is_phase(lane, "ready" if is_wanted else "stopped")

    def has_come() -> bool:
        ticks.request_look(lane.pk, lane.host.key)
        return is_followed()

    fleet.until(has_come, 60)


def test_a_real_server_s_log_comes_from_its_host_while_it_runs_and_after(
    lane: Lane, tmp_path: Path, valkey: str
) -> None:
    program = write_wrapper(tmp_path / "llama-server")
    start, rest = program.read_text().split("\n", 1)
    program.write_text(f"{start}\necho loading the model\necho to stderr >&2\n{rest}")
    env = environment(tmp_path, valkey, SLOTSERVE_LLAMA_SERVER=str(program))
    queue = ticks.host_queue(lane.host.key)
    with celery(*WORKER, "-Q", queue, env=env, log=tmp_path / "celery.log"):
        order(lane, is_wanted=True)
        run = fleet.newest(lane)
        assert run is not None
        fleet.until(lambda: told(lane, run) is not None)
        living = told(lane, run)
        order(lane, is_wanted=False)
        fleet.until(lambda: (piece := told(lane, run)) is not None and piece.is_over)
        gone = told(lane, run)
    assert living is not None
    assert gone is not None
    assert not living.is_over
    assert living.lines == gone.lines[:2] == ("loading the model", "to stderr")
