"""The data folder: made once, checked at each start, held by one bin/up at a time."""

import errno
import fcntl
import os
import re
import secrets
import shutil
import socket
import tempfile
from pathlib import Path

from lanes.installation import NAME, settle
from slotserve.stack.errors import StartError

LEAST_FREE_BYTES = 200 * 2**20
LONGEST_SOCKET = 103  # bytes; the kernel's limit is 107 on Linux, 103 elsewhere
FOLDER_MODE, PRIVATE_MODE, SECRET_MODE = 0o711, 0o700, 0o600


class DataFolder:
    """Where everything is kept. `open` answers it locked, until `close` or this process's end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.logs = path / "logs"
        self.valkey = path / "valkey"
        self.record = path / "stack.json"
        self._lock = -1
        self._texts: dict[str, str] = {}

    @classmethod
    def open(cls, path: Path) -> "DataFolder":
        """Make what is missing, check that it can be used, lock it; StartError with a sentence."""
        folder = cls(path)
        try:
            path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            for private in (folder.logs, folder.valkey):
                private.mkdir(mode=PRIVATE_MODE, exist_ok=True)
            folder._take_lock()
            folder._check_space()
            settle(path)  # a copy's processes are not those of the original
            folder._make_files()
            settle(path)
        except OSError as error:
            folder.close()
            raise StartError(_sentence(path, error)) from error
        except StartError:
            folder.close()
            raise
        return folder

    def close(self) -> None:
        """Let another bin/up have it."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def text(self, name: str) -> str:
        """What one of its small files said when it was first asked for: stopping needs it too,
        though the folder may be gone by then."""
        if name not in self._texts:
            self._texts[name] = (self.path / name).read_text(errors="replace").strip()
        return self._texts[name]

    @property
    def is_kept(self) -> bool:
        """Whether it is still the folder that was opened: not deleted, nor made anew since."""
        try:
            return (self.path / NAME).read_text().strip() == self.text(NAME)
        except OSError:
            return False

    def runtime(self) -> Path:
        """A private folder with a short path for Valkey's socket: long paths do not work."""
        base = Path(tempfile.gettempdir())  # not XDG_RUNTIME_DIR, which ends with its session
        if len(bytes(base)) > LONGEST_SOCKET - 40:
            base = Path("/tmp")  # noqa: S108 - the folder in it is checked to be ours alone
        folder = base / f"slotserve-{self.text(NAME)[:12]}"
        try:
            folder.mkdir(mode=PRIVATE_MODE, exist_ok=True)
            status = folder.lstat()
        except OSError as error:
            raise StartError(_sentence(folder, error)) from error
        if status.st_uid != os.getuid() or status.st_mode & 0o177777 != 0o40700:
            raise StartError(f"{folder} is not a folder of yours alone: remove it, start again.")
        return folder

    def write_secret(self, name: str, text: str) -> None:
        """A file that only we may read, whole or not at all."""
        new = self.path / f"{name}.new"
        new.unlink(missing_ok=True)
        with os.fdopen(
            os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, SECRET_MODE), "w"
        ) as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path / name)

    def _take_lock(self) -> None:
        self._lock = os.open(self.path / "up.lock", os.O_RDWR | os.O_CREAT, SECRET_MODE)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._lock, 20).decode().strip()
            raise StartError(
                f"SlotServe already runs on {self.path} (process {holder}): stop that one, or "
                "choose another folder with --data."
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, str(os.getpid()).encode(), 0)

    def _check_space(self) -> None:
        free = shutil.disk_usage(self.path).free
        if free < LEAST_FREE_BYTES:
            raise StartError(
                f"{self.path} has {free // 2**20} MB free: at least "
                f"{LEAST_FREE_BYTES // 2**20} MB are needed."
            )

    def _make_files(self) -> None:
        """Secrets and names that never change; the database is nobody else's to read."""
        texts = {
            "secret-key": secrets.token_urlsafe(50),
            "table-keys": secrets.token_urlsafe(48),
            NAME: secrets.token_hex(16),
            "host-key": host_key(socket.gethostname()),
        }
        for name, text in texts.items():
            if not (self.path / name).exists():
                self.write_secret(name, text)
            elif not self.text(name):
                raise StartError(f"{self.path / name} is empty: restore it, or remove it.")
        os.close(os.open(self.path / "slotserve.sqlite3", os.O_RDWR | os.O_CREAT, SECRET_MODE))


def host_key(hostname: str) -> str:
    """The machine's name as a key: small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", hostname.lower()).strip("-")[:50].strip("-") or "host"


def _sentence(path: Path, error: OSError) -> str:
    """What is wrong with the folder, and what to do."""
    where = error.filename or path
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return f"{where} cannot be written: the disk is full."
    if error.errno in {errno.ENOTDIR, errno.EEXIST, errno.EISDIR}:
        return f"The data folder {path} cannot be used: {where} is in the way."
    reason = (error.strerror or str(error)).lower()
    return f"The data folder {path} cannot be used: {where}: {reason}; choose another with --data."
