"""Usage records that Valkey cannot take now: lines of JSON in files of this edge, oldest first.

Each edge id has a folder of segments, named by the time they were begun, and a lock. A segment goes
when all of it has been sent; an edge that starts again sends what is left, each segment from its
first line. So a record may be sent twice: the database knows it by its request id. Nothing is
synced: the files outlive the process, not the machine's power.
"""

import contextlib
import fcntl
import hashlib
import logging
import os
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from urllib.parse import quote

logger = logging.getLogger(__name__)
SEGMENT_BYTES = 8 * 2**20
_ENDING = ".jsonl"
_LONGEST_NAME = 200


class UsageSpool:
    """One edge's files, of bounded length, made on first use.

    Every method but the properties may wait for the disk, and raises OSError when that fails. Only
    one thread at a time may be inside.
    """

    def __init__(self, parent: Path, edge_id: str, most_bytes: int) -> None:
        self.torn = 0  # records that a killed edge had not written to their end
        self.bytes = 0  # of the segments
        self._parent = parent
        self._folder = parent / _name(edge_id)
        self._most_bytes = most_bytes
        self._lock: int | None = None
        self._segments: list[Path] = []  # oldest first
        self._writing: int | None = None  # the newest, while it grows
        self._written = 0  # bytes of it
        self._sent = 0  # bytes of the oldest

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._segments

    def take_over(self) -> None:
        """Own what an edge that is gone has left here: this one before, or another beside it."""
        if not self._parent.is_dir():
            return
        for folder in sorted(self._parent.iterdir()):
            if (folder != self._folder or self._lock is None) and _segments(folder):
                self._open()
                if folder != self._folder:
                    self._adopt(folder)

    def append(self, lines: Sequence[bytes]) -> int:
        """Write as many of the lines, each without its end, as there is room for; say how many."""
        self._open()
        count, size = 0, 0
        for line in lines:
            if self.bytes + size + len(line) + 1 > self._most_bytes:
                break
            count, size = count + 1, size + len(line) + 1
        if count:
            self._write(b"".join(line + b"\n" for line in lines[:count]))
        return count

    def oldest(self, most: int) -> list[bytes]:
        """The oldest lines that have not been sent; none when nothing is left."""
        while self._segments:
            with contextlib.suppress(FileNotFoundError), self._segments[0].open("rb") as segment:
                segment.seek(self._sent)
                lines = [line for line in islice(segment, most) if line.endswith(b"\n")]
                if lines:
                    return [line[:-1] for line in lines]
            self._drop_oldest()
        return []

    def sent(self, lines: Sequence[bytes]) -> None:
        """These, which `oldest` gave, are in Valkey."""
        self._sent += sum(len(line) + 1 for line in lines)
        if self._sent >= _size(self._segments[0]):
            self._drop_oldest()

    def close(self) -> None:
        """Another edge may have the files."""
        self._stop_writing()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _open(self) -> None:
        """Make the folder this edge's own. A second edge of the same name gets another one."""
        if self._lock is not None:
            return
        lock = _try_lock(self._folder)
        if lock is None:
            logger.warning("another edge writes usage records to %s", self._folder)
            self._folder = self._folder.with_name(f"{self._folder.name}~{os.getpid()}")
            lock = _try_lock(self._folder)
        if lock is None:
            raise OSError(f"{self._folder} is another edge's")
        self._lock = lock
        self._list()

    def _adopt(self, folder: Path) -> None:
        lock = _try_lock(folder)
        if lock is None:
            return  # its edge is alive
        try:
            for segment in _segments(folder):
                segment.rename(self._folder / segment.name)
            self._list()
            logger.info("usage records of an edge that is gone will be sent: %s", folder.name)
        finally:
            os.close(lock)

    def _list(self) -> None:
        self._stop_writing()
        self._segments, self._sent = _segments(self._folder), 0
        self.bytes = sum(map(_size, self._segments))

    def _write(self, data: bytes) -> None:
        is_full = self._written >= SEGMENT_BYTES
        segment = self._begin() if self._writing is None or is_full else self._writing
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(segment, rest) :]
        except OSError:
            os.ftruncate(segment, self._written)  # half a record would be none
            raise
        self._written += len(data)
        self.bytes += len(data)

    def _begin(self) -> int:
        """A new segment, the newest also when the clock was set back."""
        self._stop_writing()
        last = int(self._segments[-1].stem) if self._segments else 0
        path = self._folder / f"{max(time.time_ns(), last + 1):020d}{_ENDING}"
        self._writing = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self._segments.append(path)
        return self._writing

    def _stop_writing(self) -> None:
        if self._writing is not None:
            os.close(self._writing)
        self._writing, self._written = None, 0

    def _drop_oldest(self) -> None:
        """All of it has been sent, but for a line without its end."""
        path = self._segments.pop(0)
        self.torn += _size(path) > self._sent
        self._sent = 0
        if not self._segments:
            self._stop_writing()
        path.unlink(missing_ok=True)
        self.bytes = sum(map(_size, self._segments))


def _name(edge_id: str) -> str:
    """The id as a file's name."""
    name = quote(edge_id, safe="").replace(".", "%2E")
    return name if len(name) <= _LONGEST_NAME else hashlib.sha256(edge_id.encode()).hexdigest()


def _segments(folder: Path) -> list[Path]:
    """Oldest first; no others' files."""
    found = folder.glob(f"*{_ENDING}") if folder.is_dir() else ()
    return sorted(path for path in found if path.stem.isdecimal())


def _try_lock(folder: Path) -> int | None:
    """A descriptor that holds the folder until it is closed; None while another one does."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
