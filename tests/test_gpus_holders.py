"""Naming the processes on a card, with real processes."""

import getpass
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pytest_django import Settings

from lanes import processes, records
from lanes.gpus.holders import command_of, identify
from lanes.gpus.readings import CardProcess, Holder
from lanes.models import Lane
from tests import builders, fleet

pytest_plugins = ["tests.fleet_fixtures"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["/usr/bin/python3", "/home/bob/train.py", "--token", "secret"], "python3 train.py"),
        (
            ["python", "-m", "torch.distributed.run", "--key=secret"],
            "python -m torch.distributed.run",
        ),
        (["python", "-c", "secret"], "python"),
        (["python", "-u", "x.py"], "python"),
        (["/opt/llama-server", "--api-key", "secret"], "llama-server"),
        (["bash", "run.sh"], "bash run.sh"),
        ([""], "fallback"),
        ([], "fallback"),
        (["x" * 99], "x" * 60),
    ],
)
def test_a_command_is_its_program_and_script_and_tells_no_argument(
    arguments: list[str], said: str
) -> None:
    assert command_of(arguments, "fallback") == said


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that no lane owns."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield child
    child.kill()
    child.communicate()


def holder_of(pid: int, lanes: dict[int, str]) -> Holder:
    """What is said of one process."""
    (found,) = identify([CardProcess(pid, 5)], lanes)
    return found


def test_a_process_of_nobody_s_has_user_and_command(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    found = holder_of(sleeper.pid, {1: "big"})
    assert found.is_outside
    assert found.user == getpass.getuser()
    assert found.command == os.path.basename(sys.executable)
    assert (found.memory_bytes, found.is_compute) == (5, True)
    stat = processes.stat(sleeper.pid)
    assert stat is not None
    assert found.ticks == stat.ticks


def test_a_process_that_is_gone_has_a_number_alone(sleeper: "subprocess.Popen[bytes]") -> None:
    sleeper.kill()
    sleeper.wait()
    assert holder_of(sleeper.pid, {}) == Holder(sleeper.pid, memory_bytes=5)


@pytest.mark.process
@pytest.mark.django_db
def test_a_lane_s_server_is_the_lane_s_also_when_its_environment_cannot_be_read(
    fleet_settings: Settings, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane: Lane = builders.lane("big")
    runtime = fleet.make_ready(lane, fleet.preset())
    assert runtime.pid is not None
    assert holder_of(runtime.pid, {lane.pk: "big"}).lane == "big"
    monkeypatch.setattr(processes, "environment", lambda _pid: {})
    assert holder_of(runtime.pid, {lane.pk: "big"}).lane == "big"
    assert holder_of(os.getpid(), {lane.pk: "big"}).is_outside


@pytest.mark.process
@pytest.mark.django_db
def test_a_server_of_another_installation_is_an_outsider(
    fleet_settings: Settings, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = builders.lane("big")
    runtime = fleet.make_ready(lane, fleet.preset())
    assert runtime.pid is not None
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(records, "installation_id", lambda: "another")
        elsewhere.setattr(records, "read_record", lambda _pk: None)
        assert holder_of(runtime.pid, {lane.pk: "big"}).is_outside


@pytest.mark.parametrize("lane", ["²", "9" * 5000, "-1", ""])
def test_a_mark_that_is_no_lane_is_nobody_s(settings: Settings, tmp_path: Path, lane: str) -> None:
    settings.SLOTSERVE_DATA = tmp_path
    marks = {"SLOTSERVE_INSTALLATION": records.installation_id(), "SLOTSERVE_LANE": lane}
    with named_process(marks) as pid:
        assert holder_of(pid, {5: "demo"}).lane == ""


def test_what_a_process_calls_itself_is_shown_as_plain_text(tmp_path: Path) -> None:
    program = os.fsencode(tmp_path) + b"/se\xffrv\x1b[31mer"
    os.symlink("/bin/sleep", program)
    with named_process({}, program) as pid:
        assert (
            holder_of(pid, {}).command
            == "se\N{REPLACEMENT CHARACTER}rv\N{REPLACEMENT CHARACTER}[31mer"
        )


@contextmanager
def named_process(marks: dict[str, str], program: bytes = b"/bin/sleep") -> Iterator[int]:
    with subprocess.Popen([program, b"60"], env=marks) as child:
        fleet.until(lambda: program in Path(f"/proc/{child.pid}/cmdline").read_bytes())
        yield child.pid
        child.kill()
