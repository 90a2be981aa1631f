"""A backup: one file with the database, as SQLite whichever it was, and the keys of the folder."""

import errno
import hashlib
import io
import json
import os
import stat
import tarfile
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from slotserve.databases.errors import CopyError
from slotserve.databases.tables import Summary

FORMAT = 1
DATABASE, MANIFEST = "database.sqlite3", "manifest.json"
# Of the data folder. Not installation-id: a trial restore beside the running original would take
# that one's processes for its own leftovers, and end them.
KEYS = ("secret-key", "table-keys", "host-key", "vapid-key.pem")
MOST_KEY_BYTES = 65536
FULL = (errno.ENOSPC, errno.EDQUOT)
_UNSOUND = (tarfile.TarError, zlib.error, OSError, EOFError, KeyError, TypeError, ValueError)
_NO_BACKUP = "is no backup of SlotServe, or was cut short"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is in a backup."""

    made_at: str
    vendor: str
    database_sha256: str
    tables: dict[str, Summary]
    format: int = FORMAT


def write(path: Path, database: Path, manifest: Manifest, keys: dict[str, str]) -> None:
    """Make this file, for its owner alone."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        with tarfile.open(fileobj=file, mode="w:gz") as tar:
            _add(tar, MANIFEST, json.dumps(asdict(manifest), indent=2))
            for name, text in keys.items():
                _add(tar, name, text)
            tar.add(database, DATABASE, filter=_anonymous)
        file.flush()
        os.fsync(file.fileno())


def publish(finished: Path, path: Path) -> None:
    """Give it this name in its file system; FileExistsError when another file has it.

    FAT, exFAT and many shares have no links: there it is looked first whether the name is free.
    """
    try:
        os.link(finished, path)
    except OSError:
        if path.exists():
            raise
        finished.rename(path)


def read(path: Path, database: Path) -> tuple[Manifest, dict[str, str]]:
    """Put the backup's database there; answers the rest. CopyError when it is not sound."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ValueError("it is not a plain file")
        with tarfile.open(path) as tar:
            manifest = _manifest(json.loads(_text(tar, MANIFEST)))
            present = tar.getnames()
            _read_to_the_end(tar)
            keys = {name: _text(tar, name) for name in KEYS if name in present}
            digest = _extract(_member(tar, DATABASE), database)
    except _UNSOUND as error:
        if isinstance(error, OSError) and error.errno is not None:
            if error.errno in FULL:
                raise  # it is not the backup that is wrong
            raise CopyError(f"{path} cannot be read: {error.strerror}.") from error
        if isinstance(error, tarfile.ReadError):  # its words are about each kind of compression
            raise CopyError(f"{path} {_NO_BACKUP}.") from error
        reason = " ".join(str(error).split()).rstrip(".")
        raise CopyError(f"{path} {_NO_BACKUP}: {reason}.") from error
    if digest != manifest.database_sha256:
        raise CopyError(f"{path} is damaged: its database is not what was backed up.")
    return manifest, keys


def sha256(path: Path) -> str:
    """Of a file, hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _manifest(raw: Any) -> Manifest:
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        told = raw.get("format") if isinstance(raw, dict) else raw
        raise ValueError(f"its format is {told}, this release reads {FORMAT}")
    tables = {str(table): Summary(**each) for table, each in dict(raw.pop("tables")).items()}
    return Manifest(**raw, tables=tables)


def _add(tar: tarfile.TarFile, name: str, text: str) -> None:
    member = tarfile.TarInfo(name)
    payload = text.encode()
    member.size, member.mode = len(payload), 0o600
    tar.addfile(member, io.BytesIO(payload))


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _member(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    found = tar.extractfile(name)
    if found is None:
        raise ValueError(f"{name} in it is no file")
    return found


def _read_to_the_end(tar: tarfile.TarFile) -> None:
    """The sum over all of it stands behind its last member, where tarfile does not look."""
    while tar.fileobj is not None and tar.fileobj.read(2**20):
        pass


def _text(tar: tarfile.TarFile, name: str) -> str:
    return _member(tar, name).read(MOST_KEY_BYTES * 16).decode()


def _extract(member: IO[bytes], path: Path) -> str:
    digest = hashlib.sha256()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while piece := member.read(2**20):
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()
