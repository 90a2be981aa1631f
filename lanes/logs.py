"""The files of one run's log: segments in a folder, each named for the offset of its first byte.

So every byte keeps its place for as long as it is kept, and a reader goes across a seam by its
offset alone. Standard library only: the shim writes them, in a process without Django.
"""

import contextlib
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

SEGMENTS = 4  # of one run; together they hold the limit
SUFFIX = ".log"
_NAME = re.compile(r"[0-9]{20}\.log")


class RotatingLog:
    """One run's output; past the limit its oldest quarter goes.

    What lies in the folder already is an earlier run's and goes first. A full disk loses output,
    never the server: writing raises nothing, and says what is missing once there is room.
    """

    def __init__(self, path: str, limit: int) -> None:
        self._folder = path
        self._segment = max(1, limit // SEGMENTS)
        self._handle: int | None = None
        self._offset = 0  # of the next byte
        self._size = 0  # of the open segment
        self._lost = 0
        self._why = ""
        _make_room(path)

    def write(self, chunk: bytes) -> None:
        """Append the chunk; what cannot be written is counted as lost."""
        self._leave_what_was_changed()
        if self._lost and not self._tell_lost():
            self._lost += len(chunk)
            return
        self._lost = self._append(chunk)

    def close(self) -> None:
        """Close the file; a later write opens another."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def _leave_what_was_changed(self) -> None:
        """A file that somebody removed or cut is left for a new one: offsets must hold."""
        if self._handle is None:
            return
        found = os.fstat(self._handle)
        if found.st_nlink == 0 or found.st_size != self._size:
            self.close()

    def _tell_lost(self) -> bool:
        words = f"\n[slotserve: {self._lost} bytes of output are lost: {self._why}]\n"
        return self._append(words.encode()) == 0

    def _append(self, chunk: bytes) -> int:
        """Write it, over as many segments as it takes; how many bytes could not be."""
        rest = memoryview(chunk)
        try:
            while rest:
                handle = self._open_segment()
                written = os.write(handle, rest[: self._segment - self._size])
                self._size += written
                self._offset += written
                rest = rest[written:]
        except OSError as error:
            self._why = error.strerror or str(error)
        return len(rest)

    def _open_segment(self) -> int:
        """The file to write to, with room in it."""
        if self._handle is not None and self._size < self._segment:
            return self._handle
        self.close()
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK  # whatever somebody put there
        path = os.path.join(self._folder, f"{self._offset:020}{SUFFIX}")
        self._handle = os.open(path, flags, 0o600)
        self._size = 0
        for _start, older in _files(self._folder)[:-SEGMENTS]:
            with contextlib.suppress(OSError):
                os.unlink(older)
        return self._handle


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes from `start` to before `end` of a run's log."""

    start: int
    end: int
    path: str


def segments(path: str) -> list[Segment]:
    """What there is of a log, oldest first; of a plain file, as releases before wrote, itself."""
    files = [(0, path)] if os.path.isfile(path) else _files(path)
    found = []
    for start, file in files:
        with contextlib.suppress(OSError):  # it has gone meanwhile
            status = os.lstat(file)
            if stat.S_ISREG(status.st_mode):
                found.append(Segment(start, start + status.st_size, file))
    return found


def add(path: str, chunk: bytes) -> None:
    """Append to the log of a run that has ended: nobody else writes there. May raise OSError."""
    found = segments(path)
    if not found:
        with RotatingLog(path, len(chunk) * SEGMENTS) as log:
            log.write(chunk)
        return
    flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
    with open(found[-1].path, "ab", opener=lambda file, _: _open_plain(file, flags)) as file:
        file.write(chunk)


def read(found: Sequence[Segment], offset: int, size: int) -> bytes:
    """At most `size` bytes from the offset on, of these segments; in a gap, a sentence and zeros.

    Less than that at the log's end, and where a file has gone since.
    """
    pieces: list[bytes] = []
    for number, segment in enumerate(found):
        before = found[number - 1].end if number else 0
        for start, end, path in (
            (before, segment.start, ""),
            (segment.start, segment.end, segment.path),
        ):
            if size and start <= offset < end:
                piece = _part(path, start, end, offset, size)
                pieces.append(piece)
                offset, size = offset + len(piece), size - len(piece)
    return b"".join(pieces)


def read_tail(path: str, size: int = 16384) -> str:
    """The last bytes of a log as text; empty when there is none."""
    found = segments(path)
    if not found:
        return ""
    start = max(found[0].start, found[-1].end - size)
    return read(found, start, size).decode(errors="replace")


def _part(path: str, start: int, end: int, offset: int, size: int) -> bytes:
    """Of one segment, or of the gap before it."""
    size = min(size, end - offset)
    if not path:
        words = f"[slotserve: {end - start} bytes are missing here]\n".encode()
        return words[offset - start : offset - start + size].ljust(size, b"\0")
    try:
        with open(path, "rb", opener=_open_plain) as file:
            file.seek(offset - start)
            return file.read(size)
    except OSError:
        return b""


def _files(folder: str) -> list[tuple[int, str]]:
    """Offset and path of each segment, oldest first."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [
        (int(name.removesuffix(SUFFIX)), os.path.join(folder, name))
        for name in names
        if _NAME.fullmatch(name)
    ]


def _open_plain(path: str, flags: int) -> int:
    """Where servers run as the worker's own user, they can put anything there: a link leads
    nowhere, and a pipe is not waited at."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _make_room(folder: str) -> None:
    """Nothing of an earlier run is read as this one's."""
    with contextlib.suppress(OSError):
        if os.path.isfile(folder):  # a worker of the release before names a file
            os.replace(folder, f"{folder}.1")
        for _start, path in _files(folder):
            os.unlink(path)


def without_secret(text: bytes, secret: bytes) -> tuple[bytes, bytes]:
    """The text without the secret, and apart from it an end that may be the beginning of one."""
    told = text.replace(secret, b"[API key]") if secret else text
    longest = min(max(len(secret) - 1, 0), len(told))
    begun = next((n for n in range(longest, 0, -1) if told.endswith(secret[:n])), 0)
    return told[: len(told) - begun], told[len(told) - begun :]
