"""Which processes this bin/up started: what the next one ends when this one was killed."""

import contextlib
import json
from pathlib import Path

from slotserve.stack import processes
from slotserve.stack.processes import Identity

LEFTOVER_SECONDS = 5.0


class Record:
    """`stack.json` in the data folder; it is there exactly while something may run."""

    def __init__(self, path: Path, installation: str) -> None:
        self._path = path
        self._installation = installation
        self._running: dict[str, Identity] = {}

    @property
    def is_unclean(self) -> bool:
        """Whether the last bin/up did not come to its end."""
        return self._path.exists()

    def add(self, name: str, pid: int) -> None:
        """A part was started."""
        if identity := processes.identify(pid):
            self._running[name] = identity
        self._write()

    def remove(self, name: str) -> None:
        """A part has ended."""
        self._running.pop(name, None)
        self._write()

    def clear(self) -> None:
        """Nothing is left: the end was clean."""
        self._running.clear()
        self._path.unlink(missing_ok=True)

    def end_leftovers(self) -> int:
        """End what a killed bin/up left behind; answers how many processes that were.

        A part started right before the kill may be missing in the file, and Valkey writes over
        its environment: so both are looked at.
        """
        found = {*self._read(), *processes.carrying("SLOTSERVE_STACK", self._installation)}
        left = [process for process in found if processes.is_alive(process)]
        processes.end(left, seconds=LEFTOVER_SECONDS)
        return len(left)

    def _read(self) -> list[Identity]:
        try:
            rows = json.loads(self._path.read_text())
            return [Identity(int(pid), int(start)) for pid, start in rows.values()]
        except (OSError, ValueError, TypeError, AttributeError):  # none, or cut short
            return []

    def _write(self) -> None:
        rows = {name: [identity.pid, identity.start] for name, identity in self._running.items()}
        new = self._path.with_suffix(".new")
        with contextlib.suppress(OSError):  # a full disk: the environment still tells our parts
            new.write_text(json.dumps(rows))
            new.replace(self._path)
