"""A model server's log: a file of limited size with a few older ones beside it. Standard library
only: the shim writes it, in a process without Django."""

import contextlib
import os
from types import TracebackType
from typing import Self

KEPT = 3  # older files, .1 the newest of them


class RotatingLog:
    """One server's output in a new file; past the limit that becomes `.1`, `.1` becomes `.2` …

    What an earlier server wrote is turned over first, so that nobody reads its words as this one's.
    A full disk loses lines, never the server: writing raises nothing.
    """

    def __init__(self, path: str, limit: int) -> None:
        self._path = path
        self._limit = limit
        self._handle: int | None = None
        self._size = 0
        self._open()
        if self._size:
            self._turn_over()

    def write(self, chunk: bytes) -> None:
        """Append the chunk, after turning the files over when it would pass the limit."""
        if self._size and self._size + len(chunk) > self._limit:
            self._turn_over()
        if self._handle is None:
            return
        with contextlib.suppress(OSError):
            self._size += os.write(self._handle, chunk)

    def close(self) -> None:
        """Close the file; later writes are lost."""
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

    def _open(self) -> None:
        with contextlib.suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._handle = os.open(self._path, flags, 0o600)
            self._size = os.fstat(self._handle).st_size

    def _turn_over(self) -> None:
        self.close()
        for number in range(KEPT, 0, -1):
            older = self._path if number == 1 else f"{self._path}.{number - 1}"
            with contextlib.suppress(OSError):
                os.replace(older, f"{self._path}.{number}")
        self._open()


def read_tail(path: str, size: int = 16384) -> str:
    """The last bytes of a log as text; empty when there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - size))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
