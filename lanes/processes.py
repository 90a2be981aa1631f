"""Processes by number and start ticks: who lives, who belongs to a lane, who listens where.

Linux reads /proc; elsewhere psutil answers the same questions.
"""

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import psutil

IS_LINUX = sys.platform == "linux"
INSTALLATION, LANE, SHIM = "SLOTSERVE_INSTALLATION", "SLOTSERVE_LANE", "SLOTSERVE_SHIM"
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Stat:
    """A living process: its session and its start in kernel ticks since boot."""

    pid: int
    session: int
    ticks: int
    parent: int = field(default=0, compare=False)  # changes when that ends


@cache
def boot_id() -> str:
    """A name of this boot of the host."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return f"{psutil.boot_time():.0f}"


def stat(pid: int) -> Stat | None:
    """What the kernel says of a process; None when it is gone or a zombie."""
    if not IS_LINUX:
        return _psutil_stat(pid)
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")  # names are any bytes
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()  # the name may hold spaces and brackets
    if fields[0] in "ZX":
        return None
    return Stat(pid, session=int(fields[3]), ticks=int(fields[19]), parent=int(fields[1]))


def is_alive(pid: int, ticks: int) -> bool:
    """Whether this very process lives: a number used again has other ticks."""
    found = stat(pid)
    return found is not None and found.ticks == ticks


def age_seconds(ticks: int) -> float:
    """Seconds since a process of these start ticks began, by the kernel's clock since boot."""
    return max(0.0, time_since_boot() - ticks / (_TICKS_A_SECOND if IS_LINUX else 100))


def time_since_boot() -> float:
    """Seconds since the host's boot; no change of the wall clock moves it."""
    if IS_LINUX:
        return float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - psutil.boot_time()


def environment(pid: int) -> dict[str, str]:
    """The environment a process was started with; empty when it cannot be read."""
    try:
        return psutil.Process(pid).environ() if not IS_LINUX else _linux_environment(pid)
    except (psutil.Error, OSError):
        return {}


def control_groups(pid: int) -> str:
    """The text of its control groups, which everybody may read; empty where there are none."""
    try:
        return Path(f"/proc/{pid}/cgroup").read_text(errors="replace")
    except OSError:
        return ""


def ancestry(found: Stat) -> Iterator[Stat]:
    """The process, its parent, the parent of that and so on, as far as they live."""
    known = {0}
    step: Stat | None = found
    while step is not None and step.pid not in known:
        yield step
        known.add(step.pid)
        step = stat(step.parent)


def all_pids() -> Iterator[int]:
    """Every process of this host but ourselves."""
    return (pid for pid in psutil.pids() if pid != os.getpid())


def of_session(session: int, since_ticks: int) -> list[Stat]:
    """Living processes of a session that began at these ticks.

    A session's number may be used again: if its leader lives and began at another time, none of
    them is ours.
    """
    leader = stat(session)
    if leader is not None and leader.ticks != since_ticks:
        return []
    found = (stat(pid) for pid in all_pids())
    return [s for s in found if s and s.session == session and s.ticks >= since_ticks]


def of_installation(installation: str, lane_pk: int | None = None) -> list[Stat]:
    """Living processes that carry this installation's name, and the lane's when one is given."""
    return [
        found
        for pid in all_pids()
        if _carries(environment(pid), installation, lane_pk) and (found := stat(pid)) is not None
    ]


def _carries(env: dict[str, str], installation: str, lane_pk: int | None) -> bool:
    if env.get(INSTALLATION) != installation or LANE not in env:
        return False
    return lane_pk is None or env[LANE] == str(lane_pk)


def _linux_environment(pid: int) -> dict[str, str]:
    text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    return dict(pair.split("=", 1) for pair in text.split("\0") if "=" in pair)


def _psutil_stat(pid: int) -> Stat | None:
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        since_boot = process.create_time() - psutil.boot_time()
        ticks, parent = round(since_boot * 100), process.ppid()
        return Stat(pid, session=os.getsid(pid), ticks=ticks, parent=parent)
    except (psutil.Error, OSError):
        return None
