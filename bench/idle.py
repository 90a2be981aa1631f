"""What the whole product costs while nobody does anything: processor and memory, with four lanes.

    .venv/bin/python -m bench.idle [--seconds 60] [--lanes 4]

`bin/up`'s supervisor and its parts (Valkey, web, gateway, worker, beat) with lanes whose servers, a
stand-in that does nothing, are ready; a shim for each of them counts, the server does not. Counted
are the time on a core by the kernel's books, and the proportional set size (PSS: shared pages by
how many share them). The control is a process that wakes as often as a tick comes. Fails when it
takes over 3 % of a core or over 450 MB.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import django

from bench.fake_llama_server import write_wrapper
from bench.fault_parts.settings import environment
from bench.fault_parts.stack import Stack, free_ports, temporary_folder, wait_for

folder = temporary_folder()
os.environ.update(environment(folder, 1))
django.setup()

from lanes import processes  # noqa: E402
from lanes.models import Host, Lane, ModelFile, Preset, PresetRevision, Runtime  # noqa: E402
from slotserve.stack import leftovers  # noqa: E402

MOST_PERCENT, MOST_MB = 3.0, 450.0
READY_SECONDS = 180.0
CALM_SECONDS = 15.0  # after which what a start leads to is over
OURS = ("SLOTSERVE_", "REDIS_", "DATABASE_", "DJANGO_")
CONTROL = "import time\nwhile True: time.sleep(0.5)"


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one process."""

    name: str
    percent: float  # of a core
    megabytes: float  # PSS, 10⁶ bytes


def main() -> int:
    """Start, wait, measure, print; 1 when it takes too much."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--lanes", type=int, default=4)
    wanted = parser.parse_args()
    outer = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
    program = str(write_wrapper(folder / "llama-server"))
    (folder / "data").mkdir(mode=0o711)
    stack = Stack(folder / "data", free_ports(), {**outer, "SLOTSERVE_LLAMA_SERVER": program})
    try:
        add_lanes(wanted.lanes)
        ready = Runtime.objects.filter(phase="ready", ended_at=None)
        wait_for(lambda: ready.count() == wanted.lanes, "all lanes ready", READY_SECONDS)
        time.sleep(CALM_SECONDS)
        with subprocess.Popen([sys.executable, "-c", CONTROL]) as control:
            costs = measured([*parts_of(stack), ("control", control.pid)], wanted.seconds)
            control.kill()
    finally:
        stack.stop()
        stack.left()
        shutil.rmtree(folder, ignore_errors=True)
    return tell(costs[:-1], costs[-1])


def add_lanes(count: int) -> None:
    """Lanes whose default is a preset of an empty file."""
    host = Host.objects.get()
    path = folder / "model.gguf"
    path.touch()
    file = ModelFile.objects.create(host=host, path=str(path), name="model", size_bytes=0)
    preset = Preset.objects.create(slug="model", name="model")
    preset.current = PresetRevision.objects.create(preset=preset, number=1, model_file=file)
    preset.save()
    for number in range(count):
        Lane.objects.create(
            slug=f"lane-{number}", name=f"Lane {number}", host=host, default_preset=preset
        )


def parts_of(stack: Stack) -> list[tuple[str, int]]:
    """Name and pid of the supervisor, of all parts and of what they started but model servers."""
    servers = processes.of_installation(stack.installation)
    shims = [s for s in servers if processes.SHIM in processes.environment(s.pid)]
    parts = leftovers.carrying("SLOTSERVE_STACK", stack.installation)
    named = {stack.pid_of(name): name for name in stack.parts()}
    pids = {*named, *(pid for pid, _ in parts)} - {None}
    found = [(named.get(pid, "child of a part"), pid) for pid in pids if pid is not None]
    found += [("supervisor", stack.pid), *(("shim", shim.pid) for shim in shims)]
    return sorted(found)


def measured(processes_: Iterable[tuple[str, int]], seconds: float) -> list[Cost]:
    """What each of them takes in so many seconds; memory at the end."""
    named = list(processes_)
    before = [_core_seconds(pid) for _, pid in named]
    began = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    return [
        Cost(name, (_core_seconds(pid) - earlier) / took * 100, _pss(pid))
        for (name, pid), earlier in zip(named, before, strict=True)
    ]


def tell(costs: list[Cost], control: Cost) -> int:
    """Print all of it; 1 when it is too much."""
    for one in [*costs, control]:
        print(f"{one.name:16} {one.percent:6.2f} % {one.megabytes:8.1f} MB")
    percent, megabytes = sum(c.percent for c in costs), sum(c.megabytes for c in costs)
    print(f"{'all but control':16} {percent:6.2f} % {megabytes:8.1f} MB")
    print(f"{'at most':16} {MOST_PERCENT:6.2f} % {MOST_MB:8.1f} MB")
    return 0 if percent <= MOST_PERCENT and megabytes <= MOST_MB else 1


def _core_seconds(pid: int) -> float:
    """User and system time of a living process."""
    text = Path(f"/proc/{pid}/stat").read_text()
    fields = text[text.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _pss(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    kilobytes = next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kilobytes * 1024 / 1e6


if __name__ == "__main__":
    sys.exit(main())
