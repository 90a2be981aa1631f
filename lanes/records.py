"""Files of a host: which process a lane's server is, who holds its lock, and what was left behind.

`SLOTSERVE_DATA/lanes/<lane>.json` is written by the shim alone; `<lane>.lock` is held by it and
every descendant; `<lane>.look` is held during one look. A process is its number, its start ticks by
the kernel and the boot it belongs to: no clock is asked.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from django.conf import settings

from lanes import processes
from lanes.installation import NAME, settle


@dataclass(frozen=True, slots=True)
class Record:
    """What the shim of one runtime wrote down."""

    installation: str
    lane: int
    runtime: int
    generation: int
    boot_id: str
    shim_pid: int
    shim_ticks: int
    pid: int | None = None
    ticks: int | None = None
    exit_status: int | None = None  # minus the signal's number when one ended it
    error: str = ""  # why nothing could be started
    memory_kills: int = 0  # processes that the kernel killed for want of memory around its end
    killed_line: str = ""  # … its own line about that, when the server was the one
    is_container: bool = False  # its process is the attendant of one

    @property
    def is_of_this_boot(self) -> bool:
        """Whether its processes can still live at all."""
        return self.boot_id == processes.boot_id()

    @property
    def is_shim_alive(self) -> bool:
        """Whether the shim lives: then the server is looked after."""
        return self.is_of_this_boot and processes.is_alive(self.shim_pid, self.shim_ticks)

    @property
    def is_server_alive(self) -> bool:
        """Whether the server itself lives."""
        if self.pid is None or self.ticks is None:
            return False
        return self.is_of_this_boot and processes.is_alive(self.pid, self.ticks)


KNOWN = frozenset(field.name for field in fields(Record))


def folder() -> Path:
    """Where this host keeps the files of its lanes; only its user can read them."""
    path = Path(settings.SLOTSERVE_DATA) / "lanes"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def record_path(lane_pk: int) -> Path:
    """The record of a lane's newest server."""
    return folder() / f"{lane_pk}.json"


def lock_path(lane_pk: int) -> Path:
    """The file that a lane's server and its descendants keep locked."""
    return folder() / f"{lane_pk}.lock"


def shim_errors(lane_pk: int) -> Path:
    """What the shim of a lane's newest server wrote about its own failure."""
    return folder() / f"{lane_pk}.shim"


def installation_id() -> str:
    """This data folder's own name, made once, by which its processes are known."""
    path = Path(settings.SLOTSERVE_DATA) / NAME
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{NAME}.{os.getpid()}.{secrets.token_hex(4)}")
        draft.write_text(secrets.token_hex(16))
        try:
            os.link(draft, path)  # the first one wins; a reader never sees half a name
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        settle(path.parent)
    return path.read_text().strip()


def marks(lane_pk: int) -> dict[str, str]:
    """Variables by which a lane's processes are known: to a sweep, and on a card."""
    return {processes.INSTALLATION: installation_id(), processes.LANE: str(lane_pk)}


def read_record(lane_pk: int) -> Record | None:
    """The lane's record, or None when there is none that can be read."""
    try:
        told = json.loads(record_path(lane_pk).read_text())
        # A newer shim may say more than this worker, which began before an update, knows of.
        return Record(**{name: told[name] for name in told if name in KNOWN})
    except (OSError, ValueError, TypeError):
        return None


def recorded_lanes() -> list[int]:
    """Primary keys of lanes that have files here, living or not."""
    names = {path.stem for path in folder().glob("*.lock")}
    names |= {path.stem for path in folder().glob("*.json")}
    return sorted(int(name) for name in names if name.isdigit())


def is_locked(lane_pk: int) -> bool:
    """Whether the lane's lock is held: something of its server still runs."""
    with _try_lock(lock_path(lane_pk)) as is_free:
        return not is_free


@contextmanager
def look_lock(lane_pk: int) -> Iterator[bool]:
    """The right to look at a lane, for this block; False when another look of this host has it."""
    with _try_lock(folder() / f"{lane_pk}.look") as is_ours:
        yield is_ours


@contextmanager
def _try_lock(path: Path) -> Iterator[bool]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(handle)
