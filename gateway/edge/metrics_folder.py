"""The folder in which several processes count together: locked as long as their parent lives.

A parent that was killed leaves its folder behind; the next one that starts removes it, as nobody
holds its lock. The kernel gives a lock back at any end of a process, in containers too.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "slotserve-metrics-"


@contextmanager
def metrics_folder() -> Iterator[Path]:
    """A new one for this block; those of parents that are gone are removed first."""
    _sweep(Path(tempfile.gettempdir()))
    folder, descriptor = _locked()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _locked() -> tuple[Path, int]:
    """A folder and the descriptor that holds it; another sweep may take one before it is held."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        descriptor = _lock(folder)
        if descriptor is not None and folder.exists():
            return folder, descriptor
        if descriptor is not None:
            os.close(descriptor)


def _sweep(place: Path) -> None:
    for folder in place.glob(f"{PREFIX}*"):
        descriptor = _lock(folder)
        if descriptor is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)


def _lock(folder: Path) -> int | None:
    """A descriptor that holds it; None: somebody else does, it is gone, or another user's."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None
