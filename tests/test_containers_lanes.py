"""Lanes whose model servers are containers, beside a fake of the Docker Engine's API.

Its containers are real processes that outlive attendant, shim and worker, as an engine's would. The
fixture checks after each test that no process of ours is left.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from docker import DockerClient
from pytest_django import Settings

from lanes import acting, processes, records, supervisor, ticks
from lanes.acting import SOON_SWEEPS
from lanes.containers import asking, docker_engine
from lanes.containers.launching import model_folders
from lanes.models import Lane, LaneEvent, Preset, Runtime
from lanes.stopping import mark_ended, stop_all
from tests import builders, fleet
from tests.containers import SECONDS, FakeDocker, contained, fake_docker, python_image

pytest_plugins = ["tests.fleet_fixtures"]
pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def engine(fleet_settings: Settings) -> Iterator[FakeDocker]:
    with fake_docker({"toy": python_image()}) as engine:
        fleet_settings.SLOTSERVE_DOCKER_SOCKET = str(engine.socket)
        yield engine
        fleet.until(lambda: asking._state.thread is None, SECONDS)  # it has been answered


@pytest.fixture
def lane(engine: FakeDocker, transactional_db: None) -> Lane:
    return builders.lane()


def make_ready(lane: Lane, wanted: Preset) -> Runtime:
    """Order it and look until it is ready: an attendant takes longer to start than a server."""
    made = fleet.order(lane, wanted)
    fleet.look_until(lane, fleet.is_phase(lane, "ready", made.generation), SECONDS)
    runtime = fleet.newest(lane)
    assert runtime is not None
    return runtime


def kill_shim(runtime: Runtime) -> None:
    """Its attendant dies with it, and the container lives on."""
    assert runtime.shim_pid is not None
    assert runtime.pid is not None
    fleet.kill(runtime.shim_pid)
    fleet.until(lambda: processes.stat(runtime.pid or 0) is None)


def test_a_container_becomes_ready_and_goes_with_its_order(lane: Lane, engine: FakeDocker) -> None:
    runtime = make_ready(lane, contained())
    (container,) = engine.containers()
    assert container.name.endswith(f"-lane{lane.pk}-g{runtime.generation}")
    assert container.labels["slotserve.lane"] == str(lane.pk)
    fleet.order(lane, None)
    fleet.look_until(lane, fleet.is_phase(lane, "stopped"), SECONDS)
    assert engine.containers() == []


def test_its_key_is_in_no_command_line(lane: Lane, engine: FakeDocker) -> None:
    runtime = make_ready(lane, contained())
    key = fleet.key_of(runtime)
    (container,) = engine.containers()
    assert f"TEST_API_KEY={key}" in container.attrs["Config"]["Env"]
    assert not any(
        key in Path(f"/proc/{pid}/cmdline").read_text() for pid in fleet.servers(lane.pk)
    )


def test_another_model_takes_its_place(lane: Lane, engine: FakeDocker) -> None:
    first = make_ready(lane, contained())
    second = make_ready(lane, contained())
    assert first.pk != second.pk
    (container,) = engine.containers()
    assert container.name.endswith(f"-g{second.generation}")


def test_a_container_that_ignores_term_is_killed(lane: Lane, engine: FakeDocker) -> None:
    make_ready(lane, contained("deaf"))
    fleet.order(lane, None)
    fleet.look_until(lane, fleet.is_phase(lane, "stopped"), SECONDS)
    assert engine.containers() == []


def test_a_killed_attendant_leaves_no_container(lane: Lane, engine: FakeDocker) -> None:
    runtime = make_ready(lane, contained())
    assert runtime.pid is not None
    fleet.kill(runtime.pid)
    record = records.read_record(lane.pk)
    assert record is not None
    fleet.until(lambda: not record.is_shim_alive, SECONDS)  # without any look
    assert engine.containers() == []


def test_what_a_killed_shim_left_is_removed_before_the_next_start(
    lane: Lane, engine: FakeDocker
) -> None:
    runtime = make_ready(lane, contained())
    (left,) = engine.containers()
    kill_shim(runtime)
    assert [one.id for one in engine.containers()] == [left.id]
    made = fleet.order(lane, contained())
    fleet.look_until(lane, fleet.is_phase(lane, "ready", made.generation), SECONDS)
    runtime = make_ready(lane, contained())
    fleet.order(lane, None)
    kill_shim(runtime)

    def is_gone() -> bool:
        supervisor.look_host(lane.host.key)
        return engine.containers() == []

    fleet.until(is_gone, SECONDS)


def test_nothing_starts_while_nobody_knows_whether_one_is_left(
    lane: Lane, engine: FakeDocker, fleet_settings: Settings, tmp_path: Path
) -> None:
    runtime = make_ready(lane, contained())
    kill_shim(runtime)
    fleet_settings.SLOTSERVE_DOCKER_SOCKET = str(tmp_path / "away.sock")
    fleet.order(lane, contained())
    for _ in range(5):
        supervisor.look_host(lane.host.key)
    assert Runtime.objects.filter(lane=lane).count() == 1
    assert len(engine.containers()) == 1
    fleet_settings.SLOTSERVE_DOCKER_SOCKET = str(engine.socket)
    fleet.order(lane, None)
    fleet.look_until(lane, lambda: engine.containers() == [], SECONDS)


def test_a_lane_whose_engine_is_silent_waits_for_its_host_s_looks(
    lane: Lane, engine: FakeDocker, fleet_settings: Settings, tmp_path: Path, asked: list[float]
) -> None:
    kill_shim(make_ready(lane, contained()))
    fleet_settings.SLOTSERVE_DOCKER_SOCKET = str(tmp_path / "away.sock")
    fleet.order(lane, contained())
    fleet.look_until(lane, lambda: acting._sweeps[lane.pk][1] > SOON_SWEEPS, SECONDS)
    asked.clear()
    for _ in range(SOON_SWEEPS):
        supervisor.look(lane.pk)
    assert asked == []
    fleet_settings.SLOTSERVE_DOCKER_SOCKET = str(engine.socket)
    fleet.until(lambda: looked_at(lane, "ready"), SECONDS)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The delays of looks that were asked for."""
    delays: list[float] = []
    monkeypatch.setattr(acting, "_sweeps", {})
    monkeypatch.setattr(ticks, "request_look", lambda *_, delay=0.0: delays.append(delay))
    return delays


@pytest.fixture
def asked_in(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The threads in which the engine is asked what is left."""
    names: set[str] = set()
    connected = docker_engine.connected

    def noting(socket: str, seconds: int = 0) -> AbstractContextManager[DockerClient]:
        names.add(threading.current_thread().name)
        return connected(socket, seconds)

    monkeypatch.setattr(docker_engine, "connected", noting)
    return names


def test_an_engine_that_hangs_holds_up_its_own_lanes_alone(
    lane: Lane, engine: FakeDocker, asked_in: set[str]
) -> None:
    kill_shim(make_ready(lane, contained()))
    other = builders.lane("other")
    engine.hang()
    fleet.order(lane, contained())
    fleet.order(other, fleet.preset())

    def is_told() -> bool:
        supervisor.look_host(lane.host.key)
        told = LaneEvent.objects.filter(lane=lane, kind="refused")
        return any("Docker Engine does not answer" in each.sentence for each in told)

    fleet.until(is_told, SECONDS)
    event = LaneEvent.objects.get(lane=lane, kind="refused")
    assert '"text": "the Docker Engine does not answer at {socket}' in json.dumps(event.words)
    fleet.until(lambda: looked_at(other, "ready"), SECONDS)
    assert asked_in == {"containers"}  # no look has waited for it
    assert Runtime.objects.filter(lane=lane).count() == 1  # silence is not "nothing is left"
    engine.recover()
    fleet.look_until(lane, lambda: Runtime.objects.filter(lane=lane).count() == 2, SECONDS)
    assert len(engine.containers()) <= 1


def looked_at(lane: Lane, phase: str) -> bool:
    """Look at the whole host; whether this lane's newest server is in that phase."""
    supervisor.look_host(lane.host.key)
    return fleet.is_phase(lane, phase)()


def test_a_worker_that_was_killed_is_succeeded_by_adoption(lane: Lane, engine: FakeDocker) -> None:
    fleet.order(lane, contained())
    with fleet.Worker(lane):
        fleet.until(fleet.is_phase(lane, "ready"), SECONDS)
    (container,) = engine.containers()
    for _ in range(3):
        supervisor.look(lane.pk)
    assert [one.id for one in engine.containers()] == [container.id]
    assert Runtime.objects.filter(lane=lane).count() == 1


def test_a_missing_image_is_the_reason(lane: Lane, engine: FakeDocker) -> None:
    fleet.order(lane, contained(image="no/such:image"))
    fleet.look_until(lane, fleet.is_phase(lane, "failed"), SECONDS)
    runtime = fleet.newest(lane)
    assert runtime is not None
    assert runtime.reason == "The container image no/such:image is not on this host."
    assert runtime.failure_advice == "Fetch it there: docker pull no/such:image."


def test_without_an_engine_the_lane_says_what_to_do(
    lane: Lane, fleet_settings: Settings, tmp_path: Path
) -> None:
    fleet_settings.SLOTSERVE_DOCKER_SOCKET = str(tmp_path / "none.sock")
    fleet.order(lane, contained())
    supervisor.look(lane.pk)
    assert not Runtime.objects.exists()
    assert "no Docker Engine" in LaneEvent.objects.latest("pk").sentence


def test_the_end_of_the_installation_ends_containers(lane: Lane, engine: FakeDocker) -> None:
    make_ready(lane, contained())
    list(stop_all(5.0))
    assert engine.containers() == []


def test_so_do_those_that_no_attendant_looks_after(lane: Lane, engine: FakeDocker) -> None:
    kill_shim(make_ready(lane, contained()))
    assert len(engine.containers()) == 1
    assert any("container removed" in line for line in stop_all(5.0))
    assert engine.containers() == []
    mark_ended()
    assert fleet.is_phase(lane, "stopped")()


def test_a_container_sees_its_model_and_not_what_lies_beside_a_link(tmp_path: Path) -> None:
    secrets, models = tmp_path / "secrets", tmp_path / "models"
    secrets.mkdir()
    models.mkdir()
    for name in ("blob.gguf", "environment"):
        (secrets / name).touch()
    (models / "q.gguf").symlink_to(secrets / "blob.gguf")
    (models / "notes").symlink_to(secrets / "environment")
    assert model_folders(models / "q.gguf") == (str(models), str(secrets / "blob.gguf"))
    assert model_folders(models) == (str(models), str(secrets / "blob.gguf"))
    assert model_folders(Path("/q.gguf")) == ("/q.gguf",)
