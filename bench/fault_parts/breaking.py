"""The faults: what can be broken of an installation, and how each is mended again."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import redis

from bench.fault_parts.disk import SmallDisk
from bench.fault_parts.stack import PARTS, SUPERVISOR, Stack, kill
from bench.fault_parts.times import Clock
from lanes.models import Lane

FULL_SECONDS = (1.0, 4.0)
FURTHEST_STEP = 15.0


@dataclass(frozen=True, slots=True)
class Fault:
    """One that was made. Times are ours."""

    name: str
    at: float
    end: float
    lane: str = ""  # where a model server was the victim


@dataclass(slots=True)
class Breaker:
    """Makes one fault after another, which ones is the seed's choice."""

    stack: Stack
    disk: SmallDisk
    clock: Clock | None  # None: there is no libfaketime
    lanes: list[Lane]
    chance: random.Random
    restart_database: Callable[[], None] | None = None
    made: list[Fault] = field(default_factory=list)

    def names(self) -> dict[str, int]:
        """What can be made here, and how often each is."""
        names = {f"kill {part}": 3 for part in PARTS}
        names |= {f"kill {SUPERVISOR}": 2, "kill shim": 2, "kill model server": 3}
        names |= {"empty valkey": 4}
        if not self.disk.why_not:
            names["full disk"] = 3
        if self.clock is not None:
            names["step clock"] = 4
        if self.restart_database is not None:
            names["restart database"] = 4
        return names

    def make(self) -> Fault:
        """The next one; returns when it is over and only its consequences are left."""
        names = self.names()
        name = self.chance.choices(list(names), list(names.values()))[0]
        lane = self.chance.choice(self.lanes)
        began = time.time()
        victim = self._make(name, lane)
        fault = Fault(name, began, time.time(), lane.slug if victim else "")
        self.made.append(fault)
        return fault

    def _make(self, name: str, lane: Lane) -> bool:
        """Whether a model server was the victim."""
        if name in ("kill shim", "kill model server"):
            return self._kill_server(lane, is_shim=name == "kill shim")
        if name.startswith("kill "):
            self.stack.kill(name.removeprefix("kill "))
        elif name == "empty valkey":
            self._empty_valkey()
        elif name == "full disk":
            self._fill_disk()
        elif name == "step clock" and self.clock is not None:
            self.clock.step_to(self._another_offset(self.clock.offset))
        elif self.restart_database is not None:
            self.restart_database()
        return False

    def _kill_server(self, lane: Lane, *, is_shim: bool) -> bool:
        found = self.stack.model_servers(lane.pk, shims=is_shim)
        killed = [kill(server.pid) for server in found]
        return any(killed)

    def _empty_valkey(self) -> None:
        client = redis.Redis.from_url(self.stack.redis_url, socket_timeout=5.0)
        try:
            client.flushall()
        except redis.RedisError:
            return  # it has just been killed: it is empty enough
        finally:
            client.close()

    def _fill_disk(self) -> None:
        self.disk.fill()
        try:
            time.sleep(self.chance.uniform(*FULL_SECONDS))
        finally:
            self.disk.empty()

    def _another_offset(self, offset: float) -> float:
        """Back and forth, by three seconds at least."""
        found = offset
        while abs(found - offset) < 3.0:
            found = self.chance.uniform(-FURTHEST_STEP, FURTHEST_STEP)
        return found
