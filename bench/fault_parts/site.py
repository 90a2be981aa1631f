"""The installation of a campaign and what surrounds it: disk, clock, folder."""

import os
import random
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import redis

from bench.fault_parts.disk import SmallDisk
from bench.fault_parts.installation import Faults
from bench.fault_parts.settings import HOST_KEY, SETTINGS
from bench.fault_parts.stack import PARTS, SUPERVISOR, Stack, free_ports
from bench.fault_parts.times import Clock, faketime_environment, find_faketime
from bench.soak_parts.model_server import write_wrapper
from lanes.models import Lane
from lanes.processes import Stat

FULL_SECONDS = (1.0, 4.0)
FURTHEST_STEP = 15.0
NOT_OURS = ("SLOTSERVE_", "REDIS_", "DATABASE_", "DJANGO_", "COV_")


@dataclass(slots=True)
class Site:
    """One machine, as bin/up runs it, kept up as an init system would."""

    stages: ClassVar[Sequence[str]] = ("one machine", "SQLite")
    kills: ClassVar[Mapping[str, int]] = {**dict.fromkeys(PARTS, 3), SUPERVISOR: 2}

    folder: Path
    disk: SmallDisk
    clock: Clock
    can_step: bool
    served: Path
    stack: Stack

    @classmethod
    def open(cls, folder: Path) -> "Site":
        """Start it in an empty folder."""
        served = folder / "served"
        served.touch()
        disk = SmallDisk(folder / "data")
        library = find_faketime()
        clock = Clock(folder / "clock")
        outer = {k: v for k, v in os.environ.items() if not k.startswith(NOT_OURS)}
        program = write_wrapper(folder / "llama-server", served)
        inner = {
            **outer,
            **SETTINGS,
            "SLOTSERVE_HOST_KEY": HOST_KEY,
            "SLOTSERVE_LLAMA_SERVER": str(program),
        }
        if library:
            inner |= faketime_environment(library, clock)
        try:
            stack = Stack(folder / "data", free_ports(), inner)
        except TimeoutError:
            disk.close()
            raise
        return cls(folder, disk, clock, library is not None, served, stack)

    def missing(self) -> list[str]:
        """Which faults cannot be made here, for people."""
        found = [f"no disk was filled: {self.disk.why_not}"] if self.disk.why_not else []
        if not self.can_step:
            found.append("no clock was stepped: install libfaketime")
        return [*found, "no database restarted and no link cut: those are of --hosts 2"]

    @property
    def restarts(self) -> int:
        """How often bin/up was started again."""
        return self.stack.restarts

    @property
    def web_url(self) -> str:
        """Where its pages are."""
        return f"http://127.0.0.1:{self.stack.web_port}"

    @property
    def gateway_url(self) -> str:
        """Where its gateway is."""
        return f"http://127.0.0.1:{self.stack.gateway_port}"

    def kill(self, part: str) -> bool:
        """KILL to a part, or to the supervisor; False when it does not run now."""
        return self.stack.kill(part)

    def model_servers(self, lane: Lane, *, shims: bool = False) -> list[Stat]:
        """Living processes of a lane: its servers, or those that own them."""
        return self.stack.model_servers(lane.pk, shims=shims)

    def faults(self) -> Faults:
        """What can be done to it beyond killing."""
        faults: Faults = {"empty valkey": (4, self._empty_valkey)}
        if not self.disk.why_not:
            faults |= {"full disk": (3, self._fill_disk)}
        if self.can_step:
            faults |= {"step clock": (4, self._step_clock)}
        return faults

    def more_seconds(self, lane: Lane, faults: Sequence[str]) -> float:
        """Nothing."""
        return 0.0

    def stop(self) -> list[str]:
        """Stop the product: its exit status, and what it left behind."""
        status = self.stack.stop()
        return [*([f"bin/up ended with status {status}"] if status else []), *self.stack.left()]

    def keep(self, where: Path) -> None:
        """Copy its logs and notes."""
        where.mkdir(parents=True, exist_ok=True)
        shutil.copytree(self.stack.data / "logs", where / "logs", dirs_exist_ok=True)
        for path in (self.served, self.stack.screen, self.stack.data / "slotserve.sqlite3"):
            shutil.copy(path, where)

    def close(self) -> None:
        """Take all of it away."""
        self.disk.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _empty_valkey(self, _: random.Random) -> None:
        client = redis.Redis.from_url(self.stack.redis_url, socket_timeout=5.0)
        try:
            client.flushall()
        except redis.RedisError:
            return  # it has just been killed: it is empty enough
        finally:
            client.close()

    def _fill_disk(self, chance: random.Random) -> None:
        self.disk.fill()
        try:
            time.sleep(chance.uniform(*FULL_SECONDS))
        finally:
            self.disk.empty()

    def _step_clock(self, chance: random.Random) -> None:
        """Back and forth, by three seconds at least."""
        offset = found = self.clock.offset
        while abs(found - offset) < 3.0:
            found = chance.uniform(-FURTHEST_STEP, FURTHEST_STEP)
        self.clock.step_to(found)
