"""Two machines in network namespaces, with a link between them that is cut, on PostgreSQL.

Database, Valkey, pages and gateway are on `a`; lanes on both.
"""

import contextlib
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from bench import netns
from bench.fault_parts.installation import Faults
from bench.fault_parts.settings import SETTINGS
from bench.fault_parts.times import Clock
from bench.soak_parts.model_server import write_wrapper
from bench.two_hosts import TwoHosts, why_no_postgres
from lanes import processes
from lanes.models import Lane
from lanes.processes import Stat
from slotserve.stack import leftovers

CUT_SECONDS = (1.0, 15.0)
NOTICED_SECONDS = 15.0  # docs/operations.md: until both sides know that a link was lost
RESTART_SECONDS = 0.5
STOP_SECONDS = 60.0
HOSTS = ("a", "b")
CUT = "cut link"


def why_not() -> str:
    """Why there can be no such campaign here; empty when there can."""
    return netns.why_not() or why_no_postgres()


class Pair:
    """Both machines. This process is on `a` until `close`."""

    stages: ClassVar[Sequence[str]] = ("two machines", "PostgreSQL")
    kills: ClassVar[Mapping[str, int]] = {
        "web": 3,
        "edge": 3,
        "worker-a": 3,
        "worker-b": 4,
        "valkey": 3,
    }

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.chmod(0o755)  # PostgreSQL is another user
        self.served = folder / "served"
        self.served.touch()
        self.clock = Clock(folder / "clock")  # which nobody steps
        self.restarts = 0
        self._open = contextlib.ExitStack()
        self._is_over = threading.Event()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        try:
            self._start()
        except BaseException:
            self._open.close()
            raise

    @property
    def web_url(self) -> str:
        """Where its pages are."""
        return f"http://{self._hosts.a.address}:8000"

    @property
    def gateway_url(self) -> str:
        """Where its gateway is."""
        return f"http://{self._hosts.a.address}:8001"

    def kill(self, part: str) -> bool:
        """KILL to a part; False when it does not run now."""
        process = self._hosts.processes[part]
        is_alive = process.poll() is None
        process.kill()
        return is_alive

    def model_servers(self, lane: Lane, *, shims: bool = False) -> list[Stat]:
        """Living processes of a lane: its servers, or those that own them."""
        found = processes.of_installation(self._installation(lane.host.key), lane.pk)
        return [s for s in found if (processes.SHIM in processes.environment(s.pid)) is shims]

    def faults(self) -> Faults:
        """A cut link, and a database that ends at once and begins again."""
        return {CUT: (8, self._cut), "restart database": (5, self._restart_database)}

    def more_seconds(self, lane: Lane, faults: Sequence[str]) -> float:
        """Behind a link that was cut, until connections that are lost are known to be."""
        return NOTICED_SECONDS if CUT in faults and lane.host.key == "b" else 0.0

    def missing(self) -> list[str]:
        """All that belongs to this campaign can be made: `why_not` was asked."""
        return []

    def stop(self) -> list[str]:
        """End both workers and all model servers; what is left of these then."""
        if self._is_over.is_set():
            return []
        self._is_over.set()
        self._keeper.join()
        words = []
        for key in HOSTS:
            words += self._stop_worker(f"worker-{key}")
            self._hosts.manage("stop_servers", key=key)
        for key in HOSTS:
            left = processes.of_installation(self._installation(key))
            words += [f"process {one.pid} outlived the worker of {key}" for one in left]
            leftovers.end(((one.pid, one.ticks) for one in left), seconds=0.0)
        return words

    def keep(self, where: Path) -> None:
        """Copy its logs and notes."""
        where.mkdir(parents=True, exist_ok=True)
        for path in (*self.folder.glob("*.log"), self.served):
            shutil.copy(path, where)

    def close(self) -> None:
        """Take all of it away."""
        self._open.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self) -> None:
        network = self._open.enter_context(netns.Network())
        program = write_wrapper(self.folder / "llama-server", self.served)
        self._hosts = TwoHosts(network, self.folder, program, SETTINGS)
        self._open.callback(self._hosts.close)
        self._hosts.start_stores()
        self._hosts.start()
        self._hosts.join_b()
        self._hosts.start_worker_b()
        self._open.enter_context(self._hosts.a.inside())
        self._keeper.start()

    def _keep(self) -> None:
        while not self._is_over.wait(RESTART_SECONDS):
            for name, process in list(self._hosts.processes.items()):
                if process.poll() is not None:
                    self.restarts += 1
                    self._hosts.start_again(name)

    def _cut(self, chance: random.Random) -> None:
        self._hosts.b.cut()
        try:
            time.sleep(chance.uniform(*CUT_SECONDS))
        finally:
            self._hosts.b.heal()

    def _restart_database(self, _: random.Random) -> None:
        """As `pg_ctl restart -m immediate`: no connection is ended in order."""
        process = self._hosts.processes["postgres"]
        process.send_signal(signal.SIGQUIT)
        process.wait()
        self._hosts.until(self._hosts.is_database_up)

    def _stop_worker(self, name: str) -> list[str]:
        process = self._hosts.processes[name]
        process.terminate()
        try:
            status = process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            return [f"{name} did not stop"]
        return [f"{name} ended with status {status}"] if status else []

    def _installation(self, key: str) -> str:
        path = self.folder / key / "installation-id"
        return path.read_text().strip() if path.exists() else ""
