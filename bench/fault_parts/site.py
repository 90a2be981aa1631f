"""The installation of a campaign and what surrounds it: disk, clock, folder."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from bench.fault_parts.disk import SmallDisk
from bench.fault_parts.stack import Stack, free_ports
from bench.fault_parts.times import Clock, faketime_environment, find_faketime
from bench.soak_parts.model_server import write_wrapper

DRAIN_SECONDS, STOP_SECONDS = 1.0, 2.0
SETTINGS = {
    "SLOTSERVE_DRAIN_SECONDS": f"{DRAIN_SECONDS:g}",
    "SLOTSERVE_STOP_TIMEOUT_SECONDS": f"{STOP_SECONDS:g}",
    "SLOTSERVE_BUFFER_SECONDS": "4",
    "SLOTSERVE_MIN_PRELOAD_SECONDS": "4",
    "SLOTSERVE_PORT_FIRST": "26000",
    "SLOTSERVE_PORT_LAST": "27999",
    "SLOTSERVE_LOG_LEVEL": "INFO",
    "SLOTSERVE_HOST_KEY": "faults",
    "SLOTSERVE_EDGE_ID": "faults",
    "DJANGO_SETTINGS_MODULE": "slotserve.settings",
}
NOT_OURS = ("SLOTSERVE_", "REDIS_", "DATABASE_", "DJANGO_", "COV_")


def environment(folder: Path) -> dict[str, str]:
    """For this process, which reads the installation's database and asks no broker of its own."""
    nobody = f"unix://{folder}/nobody.sock?db=0"
    quiet = {"SLOTSERVE_LOG_LEVEL": "CRITICAL"}
    return {**SETTINGS, **quiet, "SLOTSERVE_DATA": str(folder / "data"), "REDIS_URL": nobody}


@dataclass(slots=True)
class Site:
    """All of it, started."""

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
        inner = {**outer, **SETTINGS, "SLOTSERVE_LLAMA_SERVER": str(program)}
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
        return found

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
