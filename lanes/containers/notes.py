"""What an attendant writes down of its container, for those who look at its processes. No Django.

The name is the container's: control groups carry it. The process is its first one, by the engine's
numbers, which are this host's unless the engine runs elsewhere.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

# docker/<id>, docker-<id>.scope, libpod-<id>.scope: with either driver, in either version
_PART = re.compile(r"(?:[a-z]+-)?([0-9a-f]{64})(?:\.scope)?")


@dataclass(frozen=True, slots=True)
class Note:
    """One container."""

    container: str = ""  # its whole name by the engine; empty: an earlier release did not tell
    pid: int = 0  # 0, which no process has: not known


def write(path: Path, note: Note) -> None:
    """Whole or not at all."""
    draft = Path(f"{path}.{os.getpid()}")
    draft.write_text(f"{note.pid} {note.container}")
    draft.replace(path)


def read(path: Path) -> Note:
    """What `write` wrote, or a note that knows nothing."""
    try:
        pid, *container = path.read_text().split()
        return Note(container[0] if container else "", int(pid))
    except (OSError, ValueError):
        return Note()


def containers_of(control_groups: str) -> frozenset[str]:
    """The containers that a process is in, by the text of its `/proc/PID/cgroup`: of both versions,
    the drivers systemd and cgroupfs, Docker and Podman, also seen from inside another container."""
    parts = (part for line in control_groups.splitlines() for part in line.split("/"))
    return frozenset(found[1] for part in parts if (found := _PART.fullmatch(part)))
