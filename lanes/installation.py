"""The name by which a data folder's processes are known: its own, and no copy's.

`installation-id` holds the name. `installation-home` says where that file was: its inode and its
folder. A copy has another inode, or another place while the first still has the file: it gets a
name of its own, so that it never takes the original's processes for its own. A folder that was
moved keeps its name. One from before there was such a file is asked of the processes.
"""

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lanes import processes

NAME, HOME = "installation-id", "installation-home"
OF_THE_ORIGINAL = ("stack.json", "redis-url", "first-start.json")  # its processes, its Valkey
PRIVATE = 0o600


def settle(folder: Path) -> bool:
    """Give a copy a name of its own; answers whether it is one. Without a name: nothing is done.

    OSError when a copy cannot be written to.
    """
    if not (folder / NAME).is_file():
        return False
    with _alone(folder):
        is_copy = _is_copy(folder)
        if is_copy:
            for name in OF_THE_ORIGINAL:
                (folder / name).unlink(missing_ok=True)
            _write(folder / NAME, secrets.token_hex(16))
        with contextlib.suppress(OSError):  # not ours to write: the next one does
            _remember(folder)
        return is_copy


def _is_copy(folder: Path) -> bool:
    home = _home(folder)
    if home is None:
        return any(_is_another(place, folder) for place in _places(_text(folder)))
    inode, place = home
    return inode != (folder / NAME).stat().st_ino or _is_another(place, folder)


def _is_another(place: Path, folder: Path) -> bool:
    """Whether another folder there has the same name."""
    try:
        return not (place / NAME).samefile(folder / NAME) and _text(place) == _text(folder)
    except OSError:
        return False


def _places(name: str) -> Iterator[Path]:
    """The data folders of living processes of this name."""
    for pid in processes.all_pids():
        names = processes.environment(pid)
        if names.get(processes.INSTALLATION) == name and "SLOTSERVE_DATA" in names:
            yield Path(names["SLOTSERVE_DATA"])


def _home(folder: Path) -> tuple[int, Path] | None:
    try:
        told = json.loads((folder / HOME).read_text())
        return int(told["inode"]), Path(told["folder"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _remember(folder: Path) -> None:
    home = ((folder / NAME).stat().st_ino, folder.resolve())
    if _home(folder) != home:
        text = json.dumps({"inode": home[0], "folder": str(home[1])})
        _write(folder / HOME, text, mode=0o644)  # no secret, and the worker may be somebody else


def _text(folder: Path) -> str:
    return (folder / NAME).read_text(errors="replace").strip()


def _write(path: Path, text: str, *, mode: int = PRIVATE) -> None:
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(text + "\n")
    new.replace(path)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Several may start at once: one decides, the others find it decided."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
