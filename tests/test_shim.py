"""The shim alone: what it does with its order, its lock, its record and its server."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

from lanes import processes, records
from lanes import shim as shim_module
from lanes.logs import RotatingLog, read_tail, segments
from lanes.starting import SHIM
from tests import fleet

pytestmark = pytest.mark.process
SLEEPER = "import time; print('up', flush=True); time.sleep(60)"


class Shim:
    """A shim with an order of our own making."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def order(self, code: str, **changes: Any) -> dict[str, Any]:
        """An order that runs this Python code."""
        return {
            "argv": [sys.executable, "-I", "-S", "-c", code],
            "environment": {processes.INSTALLATION: str(self.folder), processes.LANE: "7"},
            "folder": "/",
            "lock_path": str(self.folder / "7.lock"),
            "record_path": str(self.folder / "7.json"),
            "log_path": str(self.folder / "7.log"),
            "log_bytes": 65536,
            "secret": "the-key",
            "run_as": None,
            "start_by": time.monotonic() + 5,
            "record": {"runtime": 1},
            **changes,
        }

    def start(self, order: dict[str, Any] | bytes) -> "subprocess.Popen[bytes]":
        """Start the shim and hand it its order."""
        text = order if isinstance(order, bytes) else json.dumps(order).encode()
        child = subprocess.Popen(
            [sys.executable, "-I", SHIM], stdin=subprocess.PIPE, start_new_session=True
        )
        self.started.append(child)
        assert child.stdin is not None
        with child.stdin as pipe:
            pipe.write(text)
        return child

    def run(self, code: str, **changes: Any) -> int:
        """Start it and wait for its exit status."""
        return self.start(self.order(code, **changes)).wait(timeout=60)

    def record(self) -> dict[str, Any]:
        """What it wrote down."""
        path = self.folder / "7.json"
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def started_server(self, code: str = SLEEPER, **changes: Any) -> "subprocess.Popen[bytes]":
        """A shim whose server has said its first words."""
        child = self.start(self.order(code, **changes))
        fleet.until(lambda: "up" in self.log())
        return child

    def log(self) -> str:
        """The server's output so far."""
        return read_tail(str(self.folder / "7.log"))


@pytest.fixture
def shim(tmp_path: Path) -> Iterator[Shim]:
    made = Shim(tmp_path)
    yield made
    for child in made.started:
        child.kill()
        child.wait()
    for pid in fleet.processes_of(str(tmp_path)):
        os.kill(pid, signal.SIGKILL)
    fleet.until(lambda: not fleet.processes_of(str(tmp_path)))


@pytest.mark.parametrize("text", [b"", b"{", b'{"argv": ["true"'])
def test_half_an_order_does_nothing(shim: Shim, text: bytes) -> None:
    assert shim.start(text).wait(timeout=60) == 64
    assert list(shim.folder.iterdir()) == []


def test_a_locked_lane_starts_nothing(shim: Shim) -> None:
    shim.started_server()
    first = shim.record()
    assert shim.run("print('second')") == 75
    assert shim.record() == first


def test_an_order_that_comes_too_late_does_nothing(shim: Shim) -> None:
    assert shim.run("print('late')", start_by=time.monotonic() - 1) == 69
    assert shim.record() == {}


def test_the_record_says_who_runs_and_how_it_ended(shim: Shim) -> None:
    assert shim.run("import sys; print('bye'); sys.exit(7)") == 0
    record = shim.record()
    assert (record["exit_status"], record["runtime"]) == (7, 1)
    assert record["pid"] > 0
    assert shim.log() == "bye\n"


def test_a_signal_is_recorded_as_minus_its_number(shim: Shim) -> None:
    child = shim.started_server()
    fleet.until(lambda: "pid" in shim.record())
    os.kill(shim.record()["pid"], signal.SIGKILL)
    assert child.wait(timeout=60) == 0
    assert shim.record()["exit_status"] == -9


def test_a_program_that_is_not_there_is_recorded(shim: Shim) -> None:
    assert shim.run("", argv=["/no/such/program"]) == 71
    assert shim.record()["exit_status"] == 127
    assert "No such file" in shim.record()["error"]
    assert shim.log().startswith("slotserve: it could not be started: [Errno 2] No such file")


def test_the_record_is_its_owners_alone(shim: Shim) -> None:
    shim.run("print('words')")
    (log,) = (shim.folder / "7.log").iterdir()
    assert (shim.folder / "7.json").stat().st_mode & 0o777 == 0o600
    assert log.stat().st_mode & 0o777 == 0o600


def test_what_the_server_writes_is_its_owners_alone(shim: Shim) -> None:
    shim.run("import os; print(oct(os.umask(0)))")
    assert shim.log() == "0o77\n"


def test_the_server_leads_a_session_of_its_own(shim: Shim) -> None:
    child = shim.started_server()
    fleet.until(lambda: "pid" in shim.record())
    pid = shim.record()["pid"]
    assert os.getsid(pid) == pid
    assert os.getsid(child.pid) == child.pid


def test_the_recorded_ticks_are_the_kernels(shim: Shim) -> None:
    child = shim.started_server()
    fleet.until(lambda: "pid" in shim.record())
    record = shim.record()
    assert processes.is_alive(record["pid"], record["ticks"])
    assert processes.is_alive(child.pid, record["shim_ticks"])
    assert not processes.is_alive(record["pid"], record["ticks"] + 1)


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_a_killed_shim_takes_the_server_along(shim: Shim) -> None:
    child = shim.started_server()
    fleet.until(lambda: "pid" in shim.record())
    pid = shim.record()["pid"]
    child.kill()
    fleet.until(lambda: processes.stat(pid) is None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change the user")
def test_another_users_server_dies_with_its_shim_too(shim: Shim) -> None:
    nobody = {"user": 65534, "group": 65534, "extra_groups": [65534]}
    program = ["/bin/sh", "-c", "echo up; exec sleep 60"]  # one that nobody may execute
    child = shim.started_server(run_as=nobody, argv=program)
    fleet.until(lambda: "pid" in shim.record())
    pid = shim.record()["pid"]
    assert psutil.Process(pid).uids().real == 65534
    assert psutil.Process(pid).gids().real == 65534
    child.kill()
    fleet.until(lambda: processes.stat(pid) is None)


def test_the_rest_of_the_group_ends_with_the_server(shim: Shim) -> None:
    code = "import os,time\nif os.fork():\n print('up', flush=True)\nelse:\n time.sleep(60)"
    assert shim.run(code) == 0
    assert not fleet.processes_of(str(shim.folder))


def test_a_grandchild_that_left_keeps_the_lock_but_not_the_shim(shim: Shim) -> None:
    code = (
        "import os,time\nif os.fork() == 0:\n os.setsid()\n time.sleep(60)\nprint('up', flush=True)"
        "\ntime.sleep(0.3)"
    )
    assert shim.run(code) == 0
    assert len(fleet.processes_of(str(shim.folder))) == 1
    assert shim.run("pass") == 75


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_closed_terminal_does_not_end_it(shim: Shim, number: int) -> None:
    child = shim.started_server()
    os.kill(child.pid, number)
    os.kill(child.pid, number)
    assert child.poll() is None
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=60) == 0
    assert shim.record()["exit_status"] == -15


def test_the_server_hears_signals_that_its_shim_lets_pass(shim: Shim) -> None:
    code = f"import signal; print(signal.getsignal(signal.SIGHUP) is signal.SIG_DFL)\n{SLEEPER}"
    child = shim.started_server(code)
    assert shim.log().startswith("True")
    child.send_signal(signal.SIGTERM)
    child.wait(timeout=60)


def test_the_log_is_turned_over_at_its_limit(shim: Shim) -> None:
    code = "import sys\nfor n in range(300): sys.stdout.write(f'{n:04}' * 256); sys.stdout.flush()"
    assert shim.run(code) == 0
    found = segments(str(shim.folder / "7.log"))
    assert [each.end - each.start for each in found] == [16384] * 3 + [300 * 1024 % 16384]
    assert found[-1].end == 300 * 1024


def test_last_words_are_read_after_the_process_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_read = threading.Event()

    class SlowLog(RotatingLog):
        def __enter__(self) -> Self:
            may_read.wait(60)
            return super().__enter__()

    monkeypatch.setattr(shim_module, "RotatingLog", SlowLog)
    argv = [sys.executable, "-c", "print('out of memory')"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE)
    order = {"log_path": str(tmp_path / "7.log"), "log_bytes": 65536}
    reader = shim_module._copy_output(process, order)
    assert process.wait() == 0
    del process
    gc.collect()
    may_read.set()
    reader.join(60)
    assert read_tail(str(tmp_path / "7.log"), 1000) == "out of memory\n"


def test_each_server_has_a_log_of_its_own(shim: Shim) -> None:
    shim.run("print('first')")
    shim.run("print('second')")
    assert shim.log() == "second\n"
    assert len(segments(str(shim.folder / "7.log"))) == 1


def test_a_look_that_tests_the_lock_does_not_turn_a_shim_away(
    shim: Shim, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "folder", lambda: shim.folder)
    child = shim.start(shim.order("pass"))
    while child.poll() is None:
        records.is_locked(7)
    assert shim.record().get("exit_status") == 0


def test_what_comes_afterwards_is_done_before_the_lane_is_free(shim: Shim) -> None:
    done = shim.folder / "done"
    lock = shim.folder / "7.lock"
    code = f"""
import fcntl, time
time.sleep(0.2)
with open({str(lock)!r}) as handle:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        open({str(done)!r}, "w").close()
"""
    afterwards = [sys.executable, "-I", "-S", "-c", code]
    assert shim.run("pass", afterwards=afterwards) == 0
    assert done.exists()
    assert shim.record()["exit_status"] == 0


def test_what_cannot_be_done_afterwards_loses_no_exit_status(shim: Shim) -> None:
    assert shim.run("import sys; sys.exit(3)", afterwards=["/no/such/program"]) == 0
    assert shim.record()["exit_status"] == 3
