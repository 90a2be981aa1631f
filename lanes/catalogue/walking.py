"""What is in a folder: model files with sizes and times, and what could not be looked at.

Bounded: so many entries, levels and seconds, whatever the folder holds. Nothing is opened.
"""

import errno
import os
import stat
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from lanes.catalogue.grouping import NAMES, FileSeen
from wire.words import Words, marked, said

MOST_ENTRIES = 50_000
MOST_LEVELS = 12
MOST_SECONDS = 5.0
_ENDINGS = (".gguf", ".safetensors")
_SYSTEM = ("/proc", "/sys", "/dev", "/run")


@dataclass(slots=True)
class Listing:
    """The files, and sentences about what was left out."""

    files: list[FileSeen] = field(default_factory=list)
    troubles: Counter[tuple[str, str]] = field(default_factory=Counter)  # text, its {why}
    is_complete: bool = True

    @property
    def sentences(self) -> list[Words]:
        """All that is to be said."""
        return [said(text, count=count, why=why) for (text, why), count in self.troubles.items()]

    def add(self, text: str, why: str = "") -> None:
        """One more of this trouble; `text` is `marked`, and may hold {why} and {count}."""
        self.troubles[text, why] += 1


@dataclass(slots=True)
class _Walk:
    listing: Listing
    ends_at: float
    levels: int
    entries: int = 0
    been: set[tuple[int, int]] = field(default_factory=set)


def walk(folder: str, *, levels: int = MOST_LEVELS) -> Listing:
    """Everything below the folder that may be a model or part of one; links are followed."""
    listing = Listing()
    state = _Walk(listing, time.monotonic() + MOST_SECONDS, levels)
    waiting = [(folder, 0)]
    while waiting:
        path, level = waiting.pop()
        waiting.extend((each, level + 1) for each in _look_into(path, level, state))
        if state.entries > MOST_ENTRIES or time.monotonic() > state.ends_at:
            _leave_off(state)
            break
    return listing


def holds_no_models(folder: str) -> bool:
    """Whether this normalised path is the system's own, or all of a machine."""
    return folder == "/" or f"{folder}/".startswith(tuple(f"{each}/" for each in _SYSTEM))


def file_seen(path: str) -> FileSeen | None:
    """A file that can be read as one; None for a folder, a pipe, a device. OSError else."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        return None
    return FileSeen(
        path=path,
        size=status.st_size,
        modified_ns=status.st_mtime_ns,
        device=status.st_dev,
        inode=status.st_ino,
        is_link=os.path.islink(path),
    )


def why_not(error: OSError) -> str:
    """Why something cannot be looked at, in words for the middle of a sentence."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return said("the worker's user may not read it")
    if error.errno == errno.ELOOP:
        return said("its links lead in a circle")
    if error.errno in (errno.ESTALE, errno.EIO, errno.ETIMEDOUT, errno.ENODEV):
        return said("the disk or the network share does not answer")
    return error.strerror.lower() if error.strerror else said("it cannot be read")


def _look_into(folder: str, level: int, state: _Walk) -> Iterator[str]:
    """Take in the files of one folder; the folders in it."""
    try:
        status = os.stat(folder)
        if (status.st_dev, status.st_ino) in state.been:
            return
        state.been.add((status.st_dev, status.st_ino))
        with os.scandir(folder) as entries:
            for entry in entries:
                state.entries += 1
                if state.entries > MOST_ENTRIES:
                    return
                if _take_in(entry, state) and level < state.levels:
                    yield entry.path
    except OSError as error:
        if level == 0:
            state.listing.add(_of_the_root(error), why_not(error))
        else:
            state.listing.add(marked("Folders left out: {count} ({why})."), why_not(error))
        state.listing.is_complete = False


def _take_in(entry: "os.DirEntry[str]", state: _Walk) -> bool:
    """Note a file; whether it is a folder to look into."""
    listing = state.listing
    is_wanted = entry.name.lower().endswith(_ENDINGS) or entry.name in NAMES
    try:
        if entry.is_dir():
            return not entry.name.startswith(".")
        if not is_wanted:
            return False
        entry.path.encode()
        seen = file_seen(entry.path)
        if seen is None:
            listing.add(marked("Names of no plain file left out: {count}."))
        else:
            listing.files.append(seen)
    except UnicodeEncodeError:
        listing.add(marked("Files left out, as their names are not UTF-8 (rename them): {count}."))
    except FileNotFoundError:
        if entry.is_symlink():
            listing.add(marked("Links to files that are not there left out: {count}."))
    except OSError as error:
        listing.add(marked("Files left out: {count} ({why})."), why_not(error))
    return False


def _of_the_root(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return marked("It is not there: is its disk mounted?")
    if isinstance(error, NotADirectoryError):
        return marked("It is not a folder.")
    return marked("It cannot be looked into: {why}.")


def _leave_off(state: _Walk) -> None:
    state.listing.is_complete = False
    if state.entries > MOST_ENTRIES:
        why = said("only its first {most} entries were looked at", most=MOST_ENTRIES)
    else:
        why = said("looking took longer than {seconds:.0f} s", seconds=MOST_SECONDS)
    state.listing.add(marked("Add the folders in it that hold models instead: {why}."), why)
