"""What the kernel says of processes that it killed for want of memory. Reads only; never raises.

Standard library only: the shim uses it, in a process without Django. Sources: the counter of our
control group (memory.events, or memory.oom_control of the older kind), else the host's in
/proc/vmstat; and /dev/kmsg, where it may be read, for the line itself.
"""

import contextlib
import os
import re
from pathlib import Path
from typing import Any

GROUPS = Path("/sys/fs/cgroup")
HOST_COUNTS = Path("/proc/vmstat")
KERNEL_LOG = Path("/dev/kmsg")
_COUNT = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)
MOST_CHARACTERS = 500
_MOST_RECORDS = 10_000  # of the kernel's log, read at the end of one server


class MemoryWatch:
    """Counts kills from its making on; `look` forgets those of longer ago than two looks, so that
    an old one is not taken for the cause of a later end."""

    def __init__(self) -> None:
        self._last = self._before = kills_so_far()
        self._log = _kernel_log()

    def look(self) -> None:
        """Call every few seconds while the server lives."""
        self._before, self._last = self._last, kills_so_far()

    def word_about(self, pid: int) -> dict[str, Any]:
        """What the kernel says of the end of this process, in the words of its record: how many of
        our control group (or of the host) were killed lately, and the line about this one."""
        kills = max(0, kills_so_far() - self._before)
        lines = _new_lines(self._log)
        line = next((line for line in reversed(lines) if is_kill_of(line, pid)), "")
        said = {"memory_kills": kills, "killed_line": line[:MOST_CHARACTERS]}
        return {name: value for name, value in said.items() if value}


def is_kill_of(line: str, pid: int) -> bool:
    """Whether this line of the kernel's log says that the process was killed for memory."""
    return re.search(rf"[Oo]ut of memory.*Kill(?:ed)? process {pid} ", line) is not None


def kills_so_far() -> int:
    """The counter as it stands; 0 where there is none."""
    for path in (*_group_files(), HOST_COUNTS):
        with contextlib.suppress(OSError, ValueError):
            found = _COUNT.search(path.read_text())
            if found:
                return int(found[1])
    return 0


def _group_files() -> list[Path]:
    """Where our control group counts, the newer kind first."""
    files: list[Path] = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(errors="replace").splitlines():
            _, controllers, group = line.split(":", 2)
            place = group.lstrip("/")
            if not controllers:
                files.insert(0, GROUPS / place / "memory.events")
            elif "memory" in controllers.split(","):
                files.append(GROUPS / "memory" / place / "memory.oom_control")
    return files


def _kernel_log() -> int | None:
    """The kernel's log from now on, or None where it may not be read."""
    try:
        handle = os.open(KERNEL_LOG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        os.lseek(handle, 0, os.SEEK_END)
    except OSError:
        os.close(handle)
        return None
    return handle


def _new_lines(handle: int | None) -> list[str]:
    """What was written since: each read gives one record, `flags;text` and more below."""
    lines: list[str] = []
    for _ in range(_MOST_RECORDS if handle is not None else 0):
        try:
            record = os.read(handle or 0, 8192)
        except BrokenPipeError:
            continue  # records were lost to newer ones: go on with those
        except OSError:
            break  # no more
        head, _, text = record.decode(errors="replace").partition(";")
        if head:
            lines.append(text.split("\n", 1)[0])
    return lines
