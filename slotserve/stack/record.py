"""Which processes this bin/up started: what the next one ends when this one was killed."""

import contextlib
import json
from pathlib import Path

from lanes import processes
from slotserve.stack import leftovers
from slotserve.stack.leftovers import Known

TERM_SECONDS = 5.0


class Record:
    """`stack.json` in the data folder; it is there exactly while something may run."""

    def __init__(self, path: Path, installation: str) -> None:
        self._path = path
        self._installation = installation
        self._parts: dict[str, Known] = {}

    @property
    def is_unclean(self) -> bool:
        """Whether the last bin/up did not come to its end."""
        return self._path.exists()

    def add(self, name: str, pid: int) -> None:
        """A part was started."""
        if found := processes.stat(pid):
            self._parts[name] = (found.pid, found.ticks)
        self._write()

    def remove(self, name: str) -> None:
        """A part has ended."""
        self._parts.pop(name, None)
        self._write()

    def clear(self) -> None:
        """Nothing is left: the end was clean."""
        self._parts.clear()
        self._path.unlink(missing_ok=True)

    def end_leftovers(self) -> int:
        """End what a killed bin/up left behind; answers how many processes that were.

        A part started right before the kill may be missing in the file, and Valkey writes over
        its environment: so both are looked at.
        """
        known = {*self._read(), *leftovers.carrying("SLOTSERVE_STACK", self._installation)}
        left = leftovers.alive(known)
        leftovers.end(left, seconds=TERM_SECONDS)
        return len(left)

    def end_servers(self) -> bool:
        """End the model servers that carry our installation's name; whether all have ended."""
        found = processes.of_installation(self._installation)
        known = [(server.pid, server.ticks) for server in found]
        return not leftovers.end(known, seconds=TERM_SECONDS)

    def _read(self) -> set[Known]:
        """What the last bin/up wrote down in this boot; nothing when that cannot be read."""
        try:
            raw = json.loads(self._path.read_text())
            if raw["boot"] != processes.boot_id():
                return set()
            return {(int(pid), int(ticks)) for pid, ticks in raw["parts"].values()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return set()

    def _write(self) -> None:
        new = self._path.with_suffix(".new")
        with contextlib.suppress(OSError):  # a full disk: the environment still tells our parts
            new.write_text(json.dumps({"boot": processes.boot_id(), "parts": self._parts}))
            new.replace(self._path)
