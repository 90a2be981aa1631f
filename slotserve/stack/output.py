"""What bin/up prints: one line at a time, each with the part it comes from."""

import asyncio
import logging
import logging.handlers
import os
import sys
from pathlib import Path

COLOURS = (36, 33, 32, 35, 34, 31)
WIDTH = 6
OWN_NAME = "up"
LOG_BYTES = 5 * 2**20
CHUNK = 2**16


class QuietFile(logging.handlers.RotatingFileHandler):
    """A log that says nothing when it cannot be written: the screen has the same lines."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """A full disk is no reason to stop."""


class Output:
    """The screen, and logs/up.log with rotation; it outlives its terminal."""

    def __init__(self, log: Path) -> None:
        self._log = QuietFile(log, maxBytes=LOG_BYTES, backupCount=2, delay=True)
        self._log.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._has_colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self._has_screen = True
        self._names: list[str] = []

    def say(self, text: str, name: str = OWN_NAME) -> None:
        """One line of a part, or of bin/up itself."""
        line = f"{name:{WIDTH}} | {text}"
        self._log.emit(logging.makeLogRecord({"msg": line, "args": None}))
        self.show(f"{self._coloured(name)} {text}")

    def show(self, text: str) -> None:
        """On the screen alone: what no log may hold, and what needs no prefix."""
        if not self._has_screen:
            return
        try:
            print(text, flush=True)
        except (OSError, ValueError):  # the terminal was closed
            self._has_screen = False

    async def relay(self, reader: asyncio.StreamReader, name: str) -> None:
        """Every line of a part, however long, until its end."""
        rest = b""
        while chunk := await reader.read(CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._say_bytes(line, name)
            if len(rest) > CHUNK:
                self._say_bytes(rest, name)
                rest = b""
        self._say_bytes(rest, name)

    def close(self) -> None:
        """Close the log."""
        self._log.close()

    def _say_bytes(self, line: bytes, name: str) -> None:
        if text := line.decode(errors="replace").rstrip():
            self.say(text, name)

    def _coloured(self, name: str) -> str:
        prefix = f"{name:{WIDTH}} |"
        if not self._has_colours:
            return prefix
        if name not in self._names:
            self._names.append(name)
        colour = COLOURS[self._names.index(name) % len(COLOURS)]
        return f"\033[{colour}m{prefix}\033[0m"
