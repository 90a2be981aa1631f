"""Processes by pid and the kernel's start time: a number used again is another process."""

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Identity:
    """One process, never another that got the same number later."""

    pid: int
    start: int  # clock ticks since boot on Linux, milliseconds since 1970 elsewhere


def identify(pid: int) -> Identity | None:
    """The living process of this number; None when there is none, or only a zombie."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        start = _start_ticks(pid) if psutil.LINUX else int(process.create_time() * 1000)
    except (psutil.Error, OSError):
        return None
    return Identity(pid, start)


def is_alive(process: Identity) -> bool:
    """Whether this very process still runs."""
    return identify(process.pid) == process


def carrying(name: str, value: str) -> list[Identity]:
    """Living processes that have this in their environment, ourselves left out."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(name) == value:
                found.append(identify(process.pid))
    return [identity for identity in found if identity]


def end(processes: Iterable[Identity], *, seconds: float) -> list[Identity]:
    """TERM, wait, KILL what is left; answers those that even KILL did not end."""
    left = [process for process in processes if is_alive(process)]
    for number, wait in ((signal.SIGTERM, seconds), (signal.SIGKILL, 2.0)):
        for process in left:
            _signal(process, number)
        deadline = time.monotonic() + wait
        while (left := [p for p in left if is_alive(p)]) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
    return left


def _signal(process: Identity, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if is_alive(process):
            os.kill(process.pid, number)


def _start_ticks(pid: int) -> int:
    """Field 22 of /proc/<pid>/stat; the name in field 2 may hold spaces and brackets."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
