"""Model servers in containers on cards: the driver names processes whose environment a worker that
is not root cannot read, and they are their lane's all the same.

Beside the fake of the Docker Engine and a fake driver.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pytest_django import Settings

from lanes import processes, records
from lanes.containers.launching import note_of, note_path
from lanes.gpus import polling
from lanes.gpus.holders import identify
from lanes.gpus.readings import CardProcess
from lanes.models import HostGpus, Lane
from tests import fleet, gpu_cast
from tests.containers import SECONDS, FakeDocker, contained, fake_docker, python_image
from tests.gpu_cast import GIB
from tests.nvml.driver import FakeDriver

pytest_plugins = ["tests.fleet_fixtures", "tests.nvml.fixtures"]
pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "input()"], start_new_session=True)
print(child.pid, flush=True)
child.wait()
"""


@pytest.fixture
def engine(fleet_settings: Settings) -> Iterator[FakeDocker]:
    with fake_docker({"toy": python_image()}) as engine:
        fleet_settings.SLOTSERVE_DOCKER_SOCKET = str(engine.socket)
        yield engine


@pytest.fixture
def lane(engine: FakeDocker, driver: FakeDriver, transactional_db: None) -> Lane:
    """A lane on GPU-a that serves from a container."""
    made = gpu_cast.gpu_lane()
    wanted = fleet.order(made, contained())
    fleet.look_until(made, fleet.is_phase(made, "ready", wanted.generation), SECONDS)
    return made


@contextmanager
def unreadable() -> Iterator[None]:
    """No environment can be read meanwhile."""
    with pytest.MonkeyPatch.context() as not_root:
        not_root.setattr(processes, "environment", lambda _pid: {})
        yield


@pytest.fixture
def pair() -> Iterator[tuple[int, int]]:
    """A process and its child, which is in a session of its own."""
    argv = [sys.executable, "-c", PARENT]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        yield parent.pid, child
        parent.communicate()


def owner_of(pid: int, lane: Lane) -> str:
    """The lane that is said to own a process."""
    with unreadable():
        (found,) = identify([CardProcess(pid, 5)], {lane.pk: lane.slug})
    return found.lane


def test_its_container_s_processes_are_no_outsiders(lane: Lane, engine: FakeDocker) -> None:
    (container,) = engine.containers()
    pid = container.attrs["State"]["Pid"]
    assert owner_of(pid, lane) == "big"
    note = note_of(lane.pk)
    assert (note.container, note.pid) == (container.id, pid)


def test_polls_count_them_as_the_lane_s(lane: Lane, driver: FakeDriver) -> None:
    driver.hold((note_of(lane.pk).pid, 11 * GIB))
    for _ in range(3):
        HostGpus.objects.update(read_at="2020-01-01T00:00Z")
        with unreadable():
            assert polling.poll_if_due(lane.host)
    assert [each["lane"] for each in gpu_cast.state().processes or ()] == ["big"]
    assert gpu_cast.outsiders() == []


def test_what_its_first_process_started_is_its_too(lane: Lane, pair: tuple[int, int]) -> None:
    parent, child = pair
    assert owner_of(child, lane) == ""
    note = note_of(lane.pk)
    note_path(lane.pk).write_text(f"{parent} {note.container}")
    assert owner_of(child, lane) == "big"
    fleet.order(lane, None)
    fleet.look_until(lane, fleet.is_phase(lane, "stopped"), SECONDS)
    assert owner_of(child, lane) == ""  # with its attendant gone the number says nothing


def test_what_is_in_its_control_group_is_its_whoever_started_it(
    lane: Lane, pair: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    container = note_of(lane.pk).container
    monkeypatch.setattr(
        processes, "control_groups", lambda _pid: f"0::/system.slice/docker-{container}.scope\n"
    )
    assert owner_of(pair[1], lane) == "big"
    monkeypatch.setattr(processes, "control_groups", lambda _pid: f"0::/docker/{'f' * 64}\n")
    assert owner_of(pair[1], lane) == ""


def test_a_server_s_workers_are_its_also_with_a_title_over_their_environment(
    lane: Lane, pair: tuple[int, int]
) -> None:
    """As vLLM's are, which name themselves VLLM::Worker over their argv and environment."""
    record = records.read_record(lane.pk)
    assert record is not None
    stat = processes.stat(pair[0])
    assert stat is not None
    told = records.record_path(lane.pk).read_text()
    changed = told.replace(f'"pid": {record.pid}', f'"pid": {stat.pid}')
    changed = changed.replace(f'"ticks": {record.ticks}', f'"ticks": {stat.ticks}')
    records.record_path(lane.pk).write_text(changed)
    assert owner_of(pair[1], lane) == "big"
    records.record_path(lane.pk).write_text(told)
