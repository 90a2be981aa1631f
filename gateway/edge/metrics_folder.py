"""The folder in which several processes count together: locked as long as their parent lives.

A parent that was killed leaves its folder behind; the next one that starts removes it, as nobody
holds its lock. The kernel gives a lock back at any end of a process, in containers too. Where no
folder can be locked (NFS, some of Lustre) it has another name, which nobody removes but its parent;
so had those of versions that locked none.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UNLOCKED = "slotserve-metrics-"
PREFIX = f"{UNLOCKED}locked-"
MOST_TRIES = 20


@contextmanager
def metrics_folder() -> Iterator[Path]:
    """A new one for this block; those of parents that are gone are removed first. OSError: there
    can be none."""
    _sweep(Path(tempfile.gettempdir()))
    folder, descriptor = _made()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def _made() -> tuple[Path, int | None]:
    """A folder and the descriptor that holds it; None: it cannot be held."""
    for _ in range(MOST_TRIES):
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            descriptor = _lock(folder)
        except OSError as error:
            if isinstance(error, BlockingIOError) or not folder.exists():
                continue  # another's sweep came before the lock
            shutil.rmtree(folder, ignore_errors=True)
            break
        if folder.exists():
            return folder, descriptor
        os.close(descriptor)
    return Path(tempfile.mkdtemp(prefix=UNLOCKED)), None


def _sweep(place: Path) -> None:
    for folder in place.glob(f"{PREFIX}*"):
        try:
            descriptor = _lock(folder)
        except OSError:
            continue  # somebody holds it, or it is none of ours
        if os.fstat(descriptor).st_uid == os.geteuid():
            shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _lock(folder: Path) -> int:
    """A descriptor that holds it. BlockingIOError: somebody else does; OSError: nobody can, or it
    is no folder or another user's."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
