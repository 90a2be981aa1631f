"""Opening files that may be anything, and reading them without harm.

Read, never mapped: a mapped file that is cut off while it is read ends the process.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from lanes.catalogue.facts import UnreachableError, UnreadableError
from lanes.catalogue.walking import why_not
from wire.words import said

# A pipe in a model's place must not hold up the worker until somebody writes to it.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class OpenFile:
    """A file that is open for reading."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    def read_at(self, offset: int, length: int) -> bytes:
        """These bytes, or fewer where the file ends."""
        length = max(0, min(length, self.size - offset))
        return os.pread(self._descriptor, length, offset) if length else b""

    def let_go(self, offset: int, length: int) -> None:
        """Keep what was read from pushing other files out of the machine's memory."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._descriptor, offset, length, os.POSIX_FADV_DONTNEED)


@contextmanager
def opened(path: str) -> Iterator[OpenFile]:
    """The file, open; UnreadableError with the reason, also for what goes wrong while reading."""
    try:
        descriptor = os.open(path, _FLAGS)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UnreadableError(said("It is not a plain file."))
            yield OpenFile(descriptor)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise UnreachableError(said("It went away while it was looked at.")) from None
    except OSError as error:
        raise UnreachableError(said("It cannot be read: {why}.", why=why_not(error))) from error
