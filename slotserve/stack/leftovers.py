"""Ending processes that a killed bin/up left behind, each known by pid and start ticks."""

import contextlib
import os
import signal
import time
from collections.abc import Iterable

from lanes import processes

Known = tuple[int, int]  # pid, start ticks
POLL_SECONDS = 0.02
KILL_SECONDS = 2.0


def carrying(name: str, value: str) -> set[Known]:
    """Living processes, but ourselves, that have this in their environment."""
    pids = [pid for pid in processes.all_pids() if processes.environment(pid).get(name) == value]
    return {(found.pid, found.ticks) for pid in pids if (found := processes.stat(pid))}


def end(known: Iterable[Known], *, seconds: float) -> list[Known]:
    """TERM, wait, KILL what is left; answers those that even KILL did not end."""
    left = alive(known)
    for number, wait in ((signal.SIGTERM, seconds), (signal.SIGKILL, KILL_SECONDS)):
        for pid, _ in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        deadline = time.monotonic() + wait
        while (left := alive(left)) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
    return left


def alive(known: Iterable[Known]) -> list[Known]:
    """Those of them that still live; a zombie does not."""
    return [(pid, ticks) for pid, ticks in known if processes.is_alive(pid, ticks)]
