"""The whole product as bin/up runs it, kept up as an init system would, and its processes."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from lanes import processes
from slotserve.stack import leftovers

ROOT = Path(__file__).resolve().parent.parent.parent
RESTART_SECONDS = 0.5
START_SECONDS = 180.0
STOP_SECONDS = 90.0
POLL_SECONDS = 0.05
PARTS = ("web", "edge", "worker", "beat", "valkey")
SUPERVISOR = "supervisor"


class Stack:
    """`python -m slotserve.stack` on a data folder, started again whenever it ends."""

    def __init__(self, data: Path, ports: tuple[int, int], environment: Mapping[str, str]) -> None:
        self.data = data
        self.web_port, self.gateway_port = ports
        self.screen = data.parent / "up.screen"
        self.restarts = 0
        self._environment = dict(environment)
        self._process = self._start()
        self._is_over = threading.Event()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()
        try:
            wait_for(
                lambda: "SlotServe runs." in self.said(), "bin/up's first start", START_SECONDS
            )
        except TimeoutError:
            self.stop()
            raise

    def said(self) -> str:
        """All that it has printed."""
        return self.screen.read_text(errors="replace")

    @property
    def installation(self) -> str:
        """Its processes carry this name."""
        return (self.data / "installation-id").read_text().strip()

    @property
    def redis_url(self) -> str:
        """Its Valkey."""
        return (self.data / "redis-url").read_text().strip()

    def kill(self, part: str) -> bool:
        """KILL to a part, or to the supervisor; False when it does not run now."""
        pid = self._process.pid if part == SUPERVISOR else self.pid_of(part)
        return pid is not None and kill(pid)

    @property
    def pid(self) -> int:
        """The supervisor's."""
        return self._process.pid

    def parts(self) -> list[str]:
        """Names of the parts that the supervisor has written down."""
        return list(self._recorded())

    def pid_of(self, part: str) -> int | None:
        """A living part's; None when it does not run now."""
        pid, ticks = self._recorded().get(part, (0, 0))
        return pid if processes.is_alive(pid, ticks) else None

    def model_servers(self, lane_pk: int, *, shims: bool = False) -> list[processes.Stat]:
        """Living processes of a lane: its servers, or those that own them."""
        found = processes.of_installation(self.installation, lane_pk)
        return [s for s in found if (processes.SHIM in processes.environment(s.pid)) is shims]

    def stop(self) -> int:
        """Stop it in order; its exit status."""
        self._is_over.set()
        self._keeper.join()
        if self._process.poll() is None:
            self._process.terminate()
        return self._process.wait(STOP_SECONDS)

    def left(self) -> list[str]:
        """What still lives of it, for people; it is ended."""
        servers = processes.of_installation(self.installation)
        parts = leftovers.carrying("SLOTSERVE_STACK", self.installation)
        found = {*((s.pid, s.ticks) for s in servers), *parts}
        words = [f"process {pid} outlived bin/up: {_command(pid)}" for pid, _ in found]
        leftovers.end(found, seconds=0.0)
        return words

    def _recorded(self) -> dict[str, tuple[int, int]]:
        try:
            parts = json.loads((self.data / "stack.json").read_text())["parts"]
        except (OSError, ValueError, KeyError):
            return {}
        return {name: (int(pid), int(ticks)) for name, (pid, ticks) in parts.items()}

    def _start(self) -> "subprocess.Popen[bytes]":
        argv = [sys.executable, "-m", "slotserve.stack", "--data", str(self.data), "--no-demo"]
        argv += ["--web-port", str(self.web_port), "--gateway-port", str(self.gateway_port)]
        with self.screen.open("ab") as screen:
            return subprocess.Popen(
                argv,
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=screen,
                stderr=screen,
            )

    def _keep(self) -> None:
        while not self._is_over.wait(RESTART_SECONDS):
            if self._process.poll() is not None:
                self.restarts += 1
                self._process = self._start()


def free_ports() -> tuple[int, int]:
    """Two ports of loopback that nobody listens on now."""
    loopback = ("127.0.0.1", 0)
    with socket.create_server(loopback) as one, socket.create_server(loopback) as other:
        return one.getsockname()[1], other.getsockname()[1]


def kill(pid: int) -> bool:
    """KILL; whether there was such a process."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def wait_for(condition: Callable[[], bool], what: str, seconds: float) -> None:
    """Poll until it is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(POLL_SECONDS)


def temporary_folder() -> Path:
    """A folder with a short path: sockets need one."""
    return Path(tempfile.mkdtemp(prefix="ssf-", dir="/tmp"))


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")[:150]
    except OSError:
        return "gone meanwhile"
