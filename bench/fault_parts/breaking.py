"""The faults: what is broken of an installation, and how often."""

import random
import time
from dataclasses import dataclass, field

from bench.fault_parts.installation import Installation
from bench.fault_parts.stack import kill
from lanes.models import Lane


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

    site: Installation
    lanes: list[Lane]
    chance: random.Random
    made: list[Fault] = field(default_factory=list)

    def names(self) -> dict[str, int]:
        """What can be made here, and how often each is."""
        names = {f"kill {part}": often for part, often in self.site.kills.items()}
        names |= {"kill shim": 2, "kill model server": 3}
        return names | {name: often for name, (often, _) in self.site.faults().items()}

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
            found = self.site.model_servers(lane, shims=name == "kill shim")
            killed = [kill(server.pid) for server in found]
            return any(killed)
        if name.startswith("kill "):
            self.site.kill(name.removeprefix("kill "))
        else:
            _, make = self.site.faults()[name]
            make(self.chance)
        return False
