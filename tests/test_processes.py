"""Processes by number and ticks: who lives, and who belongs to a session or a lane."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lanes import ending, processes
from tests import fleet

SLEEP = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"]


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    marks = {"SLOTSERVE_INSTALLATION": "test-x", "SLOTSERVE_LANE": "5"}
    child = subprocess.Popen(SLEEP, env=marks, start_new_session=True)
    fleet.until(lambda: processes.environment(child.pid) == marks)
    yield child
    child.kill()
    child.wait()


def test_a_process_is_its_number_and_its_ticks(sleeper: "subprocess.Popen[bytes]") -> None:
    found = processes.stat(sleeper.pid)
    assert found is not None
    assert processes.is_alive(sleeper.pid, found.ticks)
    assert not processes.is_alive(sleeper.pid, found.ticks - 1)


def test_a_zombie_is_dead(sleeper: "subprocess.Popen[bytes]") -> None:
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert processes.stat(sleeper.pid) is None


def test_age_grows_from_the_start(sleeper: "subprocess.Popen[bytes]") -> None:
    found = processes.stat(sleeper.pid)
    assert found is not None
    assert 0 <= processes.age_seconds(found.ticks) < 120


def test_a_name_with_brackets_and_spaces_is_read_right() -> None:
    code = "import ctypes,time; ctypes.CDLL(None).prctl(15, b'a) R 1 (b', 0, 0, 0); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-I", "-c", code], start_new_session=True) as child:
        fleet.until(lambda: "a) R 1" in Path(f"/proc/{child.pid}/comm").read_text())
        found = processes.stat(child.pid)
        child.kill()
    assert found is not None
    assert found.session == child.pid


def test_a_name_of_any_bytes_keeps_no_look_from_seeing(sleeper: "subprocess.Popen[bytes]") -> None:
    """The kernel cuts names at 15 bytes, amid a letter too; and anybody may call itself so."""
    code = r"import ctypes,time; ctypes.CDLL(None).prctl(15, b'\xff\xc3', 0, 0, 0); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-I", "-c", code], start_new_session=True) as child:
        fleet.until(lambda: b"\xff" in Path(f"/proc/{child.pid}/comm").read_bytes())
        found, others = processes.stat(child.pid), processes.of_installation("test-x", 5)
        child.kill()
    assert found is not None
    assert found.session == child.pid
    assert [other.pid for other in others] == [sleeper.pid]


def test_a_lanes_processes_are_found_by_their_environment(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    assert [s.pid for s in processes.of_installation("test-x", 5)] == [sleeper.pid]
    assert processes.of_installation("test-x", 6) == []
    assert processes.of_installation("test-y", 5) == []


def test_a_session_whose_number_was_used_again_is_not_ours(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    found = processes.stat(sleeper.pid)
    assert found is not None
    assert processes.of_session(sleeper.pid, found.ticks) == [found]
    assert processes.of_session(sleeper.pid, found.ticks - 100) == []


def test_another_process_with_the_same_number_is_not_signalled(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    found = processes.stat(sleeper.pid)
    assert found is not None
    assert not ending.send(replace(found, ticks=found.ticks - 1), signal.SIGKILL)
    assert sleeper.poll() is None
    assert ending.send(found, signal.SIGKILL)
    assert sleeper.wait(timeout=60) == -signal.SIGKILL
