"""Request bodies on their way up: their beginning in memory, the rest in unlinked files."""

import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from pathlib import Path

from gateway.edge.refusals import EdgeRefusal, refuse

SMALL_BYTES = 262_144  # always in memory: a connection's own buffers are as large
MIDDLING_BYTES = 4 * 2**20  # in memory while all of these together have no more than
MIDDLING_TOGETHER_BYTES = 64 * 2**20
PIECE_BYTES = 262_144  # read and sent at once: short enough to hold up nobody
_JOINED_BYTES = 65_536  # as much is sent as it came: to join it would copy it
_AGAIN_SECONDS = 5.0
_CLOSED = "this body is closed"
_FULL = refuse("gateway_busy", "it holds as many request bodies as it may.", _AGAIN_SECONDS)
_NO_ROOM = refuse("gateway_busy", "there is no room to keep the request's body.", _AGAIN_SECONDS)


class SpoolBudget:
    """What all bodies of this process may take together, and the folder of the large ones."""

    def __init__(self, most: int, folder: Path | None = None) -> None:
        self.used = 0
        self.middling = 0  # of `used`: bytes in memory beyond what is small
        self.folder = folder  # None: the system's
        self._most = most
        self._closer: ThreadPoolExecutor | None = None

    def take(self, size: int) -> bool:
        """Count these bytes, unless they are too many."""
        if self.used + size > self._most:
            return False
        self.used += size
        return True

    def give(self, size: int) -> None:
        """They are gone."""
        self.used -= size

    def close(self, file: FileIO) -> None:
        """Free a file's pages beside the loop: 32 MB of them take milliseconds."""
        if self._closer is None:
            self._closer = ThreadPoolExecutor(1, "spool")
        self._closer.submit(file.close)

    def end(self) -> None:
        """No more bodies come."""
        if self._closer is not None:
            self._closer.shutdown(wait=False)
            self._closer = None


class Spool:
    """One body as it came, to be read any number of times until `close`, which always comes."""

    __slots__ = (
        "_budget",
        "_chunks",
        "_file",
        "_filed",
        "_in_memory",
        "_is_closed",
        "_middling",
        "length",
    )

    def __init__(self, budget: SpoolBudget, in_memory: int = MIDDLING_BYTES) -> None:
        self.length = 0
        self._in_memory = in_memory  # bytes at most, while there is room
        self._budget = budget
        self._chunks: list[bytes] = []
        self._middling = 0
        self._file: FileIO | None = None
        self._filed = 0  # bytes in it
        self._is_closed = False

    def add(self, chunk: bytes) -> EdgeRefusal | None:
        """Keep the next bytes, or say why they cannot be kept."""
        size = len(chunk)
        if not size:
            return None
        if not self._budget.take(size):
            return _FULL
        self.length += size
        if self._file is None and self._fits_in_memory(size):
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
        chunks = iter(self._chunks)
        while piece := _joined(chunks):
            if self._is_closed:
                raise ValueError(_CLOSED)
            yield piece
        for at in range(0, self._filed, PIECE_BYTES):
            if self._file is None:
                raise ValueError(_CLOSED)
            yield os.pread(self._file.fileno(), PIECE_BYTES, at)

    def close(self) -> None:
        """Give back what it takes, however far it has come. May be called twice."""
        self._budget.give(self.length)
        self.length = 0
        self._chunks = []
        self._is_closed = True
        self._budget.middling -= self._middling
        self._middling = 0
        if self._file is not None:
            self._budget.close(self._file)
            self._file = None

    def _fits_in_memory(self, size: int) -> bool:
        if self.length <= SMALL_BYTES:
            return True
        budget = self._budget
        if self.length > self._in_memory or budget.middling + size > MIDDLING_TOGETHER_BYTES:
            return False
        budget.middling += size
        self._middling += size
        return True

    def _write(self, chunk: bytes) -> None:
        """Behind what is in memory, which stays there: to move it would hold up every stream."""
        if self._file is None:
            made = tempfile.TemporaryFile(buffering=0, dir=self._budget.folder)  # noqa: SIM115
            self._file = made
        left = memoryview(chunk)
        while left:
            left = left[self._file.write(left) :]
        self._filed += len(chunk)


def _joined(chunks: Iterator[bytes]) -> bytes:
    """The next of them, small ones as many as are worth a write."""
    taken: list[bytes] = []
    size = 0
    while size < _JOINED_BYTES and (chunk := next(chunks, b"")):
        taken.append(chunk)
        size += len(chunk)
    return b"".join(taken)
