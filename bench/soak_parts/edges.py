"""Edge processes that come and go: stopped with TERM, or killed, and started again."""

import asyncio
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
START_SECONDS = 20.0
STOP_SECONDS = 60.0
KNOWN_SECONDS = 0.2  # until members hear that an edge is gone, as from a balancer


class Edges:
    """Some edges on ports of their own. `ports` are those that take requests now."""

    def __init__(self, count: int, log: Path) -> None:
        self.ports: list[int] = []
        self.kills: list[tuple[int, float]] = []  # port, time
        self.stops: list[tuple[int, float]] = []
        self.restarts = 0
        self._log = log
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        for _ in range(count):
            self._start(_free_port())

    def _start(self, port: int) -> None:
        argv = [sys.executable, "-m", "gateway.edge", "--port", str(port)]
        with self._log.open("ab") as log:
            process = subprocess.Popen(argv, cwd=ROOT, stdout=log, stderr=log)
        self._running[port] = process
        deadline = time.monotonic() + START_SECONDS
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the edge on port {port} did not start; see {self._log}")
            time.sleep(0.05)
        self.ports.append(port)

    async def turn_over(self, every: float) -> None:
        """For ever: end one of them, three times of four in a clean way, and start it again."""
        while True:
            await asyncio.sleep(random.uniform(0.7, 1.3) * every)
            port = random.choice(list(self._running))
            await asyncio.to_thread(self._restart, port, is_kill=random.random() < 0.25)

    def _restart(self, port: int, *, is_kill: bool) -> None:
        process = self._running.pop(port)
        (self.kills if is_kill else self.stops).append((port, time.time()))
        process.send_signal(signal.SIGKILL if is_kill else signal.SIGTERM)
        time.sleep(KNOWN_SECONDS)
        self.ports.remove(port)
        process.wait(STOP_SECONDS)
        self._start(port)
        self.restarts += 1

    def stop(self) -> list[int]:
        """End all; their exit statuses."""
        for process in self._running.values():
            process.terminate()
        return [process.wait(STOP_SECONDS) for process in self._running.values()]


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port
