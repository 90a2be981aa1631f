"""Request bodies that are waiting to go up: small ones in memory, the rest in unlinked files."""

import os
import tempfile
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from gateway.edge.refusals import EdgeRefusal, refuse

IN_MEMORY_BYTES = 262_144
PIECE_BYTES = 65_536  # read and sent at once: short enough to hold up nobody
_AGAIN_SECONDS = 5.0
_FULL = refuse("gateway_busy", "it holds as many request bodies as it may.", _AGAIN_SECONDS)
_NO_ROOM = refuse("gateway_busy", "there is no room to keep the request's body.", _AGAIN_SECONDS)


class SpoolBudget:
    """What all bodies of this process may take together, and the folder of the large ones."""

    def __init__(self, most: int, folder: Path | None = None) -> None:
        self.used = 0
        self.folder = folder  # None: the system's
        self._most = most

    def take(self, size: int) -> bool:
        """Count these bytes, unless they are too many."""
        if self.used + size > self._most:
            return False
        self.used += size
        return True

    def give(self, size: int) -> None:
        """They are gone."""
        self.used -= size


class Spool:
    """One body as it came, to be read any number of times until `close`, which always comes."""

    __slots__ = ("_budget", "_chunks", "_file", "length")

    def __init__(self, budget: SpoolBudget) -> None:
        self.length = 0
        self._budget = budget
        self._chunks: list[bytes] = []
        self._file: FileIO | None = None

    def add(self, chunk: bytes) -> EdgeRefusal | None:
        """Keep the next bytes, or say why they cannot be kept."""
        size = len(chunk)
        if not self._budget.take(size):
            return _FULL
        self.length += size
        if self._file is None and self.length <= IN_MEMORY_BYTES:
            self._chunks.append(chunk)
            return None
        try:
            self._write(chunk)
        except OSError:
            return _NO_ROOM
        return None

    def whole(self) -> bytes | None:
        """The body in one, if it is in memory."""
        if self._file is not None:
            return None
        if len(self._chunks) > 1:
            self._chunks = [b"".join(self._chunks)]
        return self._chunks[0] if self._chunks else b""

    def pieces(self) -> Iterator[bytes]:
        """The body from its start, piece by piece; ValueError once it is closed."""
        for at in range(0, self.length, PIECE_BYTES):
            yield self._read(at)

    def close(self) -> None:
        """Give back what it takes, however far it has come. May be called twice."""
        self._budget.give(self.length)
        self.length = 0
        self._chunks = []
        if self._file is not None:
            self._file.close()

    def _read(self, at: int) -> bytes:
        if self._file is not None:
            return os.pread(self._file.fileno(), PIECE_BYTES, at)
        return (self.whole() or b"")[at : at + PIECE_BYTES]

    def _write(self, chunk: bytes) -> None:
        if self._file is None:
            made = tempfile.TemporaryFile(buffering=0, dir=self._budget.folder)  # noqa: SIM115
            self._file = made
            chunk = b"".join((*self._chunks, chunk))
            self._chunks = []
        left = memoryview(chunk)
        while left:
            left = left[self._file.write(left) :]
