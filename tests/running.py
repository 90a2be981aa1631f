"""Driving a bin/up from a test: its lines, its signals, and who is left afterwards."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psutil

from slotserve.stack.parts import ROOT
from tests.ports import free_port, of_model_servers

Answer = TypeVar("Answer")
TEST_RUN = ("SLOTSERVE_", "REDIS_", "DATABASE_", "DJANGO_", "COV_")  # this process's, not bin/up's


def eventually(ask: Callable[[], Answer], what: str, seconds: float = 60.0) -> Answer:
    """The first true answer; fails with `what` when there is none in time."""
    deadline = time.monotonic() + seconds
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)
    return answer


def clean_environment(**more: str) -> dict[str, str]:
    """This process's environment without what belongs to the test run, and with some more."""
    return {k: v for k, v in os.environ.items() if not k.startswith(TEST_RUN)} | more


class Up:
    """One bin/up (or its like) on a data folder, its output in a file."""

    def __init__(self, data: Path, *command: str, **environment: str) -> None:
        self.data = data
        self.ports = free_port(), free_port()
        self._command = command or (sys.executable, "-m", "tests.tiny_stack")
        self._environment = environment
        self._screen = data.with_suffix(".screen")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *flags: str) -> "Up":
        """Start it; `stop` or `end` must follow."""
        ports = ("--web-port", str(self.ports[0]), "--gateway-port", str(self.ports[1]))
        with self._screen.open("wb") as screen:
            self.process = subprocess.Popen(
                [*self._command, "--data", str(self.data), *ports, *flags],
                cwd=ROOT,
                env=clean_environment(**self._model_ports() | self._environment),
                stdin=subprocess.DEVNULL,
                stdout=screen,
                stderr=subprocess.STDOUT,
            )
        return self

    @staticmethod
    def _model_ports() -> dict[str, str]:
        ports = of_model_servers()
        return {"SLOTSERVE_PORT_FIRST": str(ports[0]), "SLOTSERVE_PORT_LAST": str(ports[-1])}

    @property
    def screen(self) -> str:
        """What it has printed since its last start."""
        return self._screen.read_text(errors="replace")

    def wait_for(self, text: str, seconds: float = 60.0) -> None:
        """Until it has printed this."""
        try:
            eventually(lambda: text in self.screen, text, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.screen}") from None

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def status(self, seconds: float = 60.0) -> int:
        """Its exit status, once it has ended."""
        assert self.process is not None
        return self.process.wait(seconds)

    def stop(self, number: signal.Signals = signal.SIGINT, seconds: float = 60.0) -> int:
        """Stop it in order; answers its exit status."""
        self.send(number)
        return self.status(seconds)

    def end(self) -> None:
        """For finalizers: end it and everything of its data folder, however a test left it."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for process in self.processes():
            process.kill()
        shutil.rmtree(Path(tempfile.gettempdir()) / self._runtime_name(), ignore_errors=True)

    def processes(self) -> list[psutil.Process]:
        """Everything alive that belongs to its data folder, by environment or command line."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def part(self, name: str) -> psutil.Process:
        """The part of this name, as the record has it."""
        return psutil.Process(json.loads((self.data / "stack.json").read_text())["parts"][name][0])

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                return False
            words = " ".join([*process.cmdline(), *process.environ().values()])
        except (psutil.Error, OSError):
            return False
        return str(self.data) in words or self._runtime_name() in words

    def _runtime_name(self) -> str:
        file = self.data / "installation-id"
        identity = file.read_text().strip() if file.is_file() else ""
        return f"slotserve-{identity[:12]}" if identity else "slotserve-none"
