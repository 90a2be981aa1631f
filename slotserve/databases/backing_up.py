"""Backing up and restoring: everything but model files, logs, and what Valkey makes anew."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection, transaction

from lanes import clock
from slotserve.databases import archive
from slotserve.databases.copying import Tell, copy_all
from slotserve.databases.errors import CopyError
from slotserve.databases.moving import fill_from
from slotserve.databases.sqlite_files import copy_file, opened, refuse_while_running
from slotserve.databases.tables import Summary, all_models, read_rows, summary

TARGET = "copied_to"


def backup(path: Path, tell: Tell) -> dict[str, Summary]:
    """Write a backup while the product runs; answers the tables. CopyError with a sentence."""
    try:
        if path.exists():
            raise CopyError(f"{path} exists: give another name.")
        with TemporaryDirectory(prefix=".slotserve-backup-", dir=path.parent) as folder:
            snapshot = Path(folder) / archive.DATABASE
            made_at = clock.database_now().isoformat(timespec="seconds")
            tables = _snapshot(snapshot, tell)
            digest = archive.sha256(snapshot)
            manifest = archive.Manifest(made_at, connection.vendor, digest, tables)
            finished = Path(folder) / path.name
            archive.write(finished, snapshot, manifest, keys := _keys())
            archive.publish(finished, path)
    except (OSError, DatabaseError) as error:
        raise CopyError(f"No backup was made: {error}.") from error
    missing = [name for name in ("secret-key", "table-keys") if name not in keys]
    if missing:
        tell(f"Not in it, for the data folder has none: {', '.join(missing)}. Keep them yourself.")
    if path.stat().st_mode & 0o077:
        tell(f"{path} may be read by others: its disk keeps no permissions. Move it where it does.")
    return tables


def restore(path: Path, tell: Tell) -> archive.Manifest:
    """Fill an empty database and a data folder of no other installation; CopyError else.

    A kill at any time leaves the database as empty as before; the same command may be run again.
    """
    folder = Path(settings.SLOTSERVE_DATA)
    try:
        folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        refuse_while_running(folder)
        with TemporaryDirectory(prefix=".slotserve-restore-", dir=folder) as temporary:
            snapshot = Path(temporary) / archive.DATABASE
            manifest, keys = archive.read(path, snapshot)
            _refuse_other_keys(folder, keys)
            _make_private_database()
            fill_from(snapshot, tell, before_commit=lambda: _write_keys(folder, keys))
    except OSError as error:
        raise CopyError(f"Nothing was restored: {error}.") from error
    return manifest


def _snapshot(path: Path, tell: Tell) -> dict[str, Summary]:
    """Our database at one moment, in a SQLite file."""
    if connection.vendor == "sqlite":
        copy_file(Path(connection.settings_dict["NAME"]), path)
        with opened(path, TARGET):
            return {m._meta.db_table: summary(read_rows(m, TARGET)) for m in all_models()}
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    with opened(path, TARGET), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        return copy_all(DEFAULT_DB_ALIAS, TARGET, tell)


def _keys() -> dict[str, str]:
    folder = Path(settings.SLOTSERVE_DATA)
    present = (name for name in archive.KEYS if (folder / name).is_file())
    return {name: (folder / name).read_text() for name in present}


def _refuse_other_keys(folder: Path, keys: dict[str, str]) -> None:
    for name, text in keys.items():
        file = folder / name
        if file.exists() and file.read_text().strip() != text.strip():
            raise CopyError(
                f"{file} is of another installation: restore into a folder of its own "
                "(SLOTSERVE_DATA), or remove the file."
            )


def _write_keys(folder: Path, keys: dict[str, str]) -> None:
    for name, text in keys.items():
        if (folder / name).exists():
            continue
        new = folder / f"{name}.new"
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(folder / name)


def _make_private_database() -> None:
    """A new SQLite file is nobody else's to read."""
    if connection.vendor == "sqlite":
        os.close(os.open(connection.settings_dict["NAME"], os.O_RDWR | os.O_CREAT, 0o600))
