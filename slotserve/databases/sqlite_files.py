"""SQLite files: copied while they are in use, held still, opened beside the product's database."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from django.core.management import call_command
from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from slotserve.databases.errors import CopyError

BUSY_SECONDS = 10.0
PRIVATE = 0o600


def copy_file(source: Path, target: Path) -> None:
    """A consistent copy of a file that may be in use, for its owner alone."""
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))
    try:
        with _opened(source) as old, closing(sqlite3.connect(target)) as new:
            old.backup(new)
            sound = new.execute("PRAGMA quick_check").fetchone()[0]
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            words = f"There is no room for a copy of {source}: make some, or take another folder."
            raise CopyError(words) from error
        raise CopyError(f"{source} cannot be read: {error}.") from error
    if sound != "ok":
        raise CopyError(f"{source} is damaged: {sound}. Take an earlier backup.")


@contextmanager
def held_still(source: Path) -> Iterator[None]:
    """Nobody writes to the file meanwhile; CopyError when something runs on it."""
    refuse_while_running(source.parent)
    try:
        with _opened(source) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.rollback()
    except sqlite3.OperationalError as error:
        raise CopyError(f"{source} is in use ({error}): stop what runs on it first.") from error


@contextmanager
def opened(path: Path, alias: str) -> Iterator[str]:
    """The file as one of Django's databases, brought up to this release; answers the alias."""
    default = connections.settings["default"]
    options = {"transaction_mode": "IMMEDIATE", "timeout": BUSY_SECONDS}
    changes = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path), "OPTIONS": options}
    unused = {"USER": "", "PASSWORD": "", "HOST": "", "PORT": "", "CONN_MAX_AGE": 0}
    connections.settings[alias] = {**default, **unused, **changes}
    try:
        bring_up_to_date(alias)
        yield alias
    finally:
        connections[alias].close()
        del connections[alias]
        del connections.settings[alias]


def bring_up_to_date(alias: str) -> None:
    """Migrate, where there is something to."""
    executor = MigrationExecutor(connections[alias])
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", database=alias, interactive=False, verbosity=0)


def refuse_foreign(path: Path) -> None:
    """CopyError unless it is SlotServe's, of this release or one before."""
    known = set(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)
    ours = {label for label, _ in known}
    try:
        with _opened(path) as connection:
            rows = connection.execute(f"SELECT app, name FROM {_MIGRATIONS}").fetchall()  # noqa: S608
    except sqlite3.Error as error:
        raise CopyError(f"{path} is no database of SlotServe ({error}).") from error
    applied = {(app, name) for app, name in rows if app in ours}
    if ("bookings", "0001_initial") not in applied:
        raise CopyError(f"{path} is no database of SlotServe: it has no bookings.")
    newer = sorted(f"{app}.{name}" for app, name in applied - known)
    if newer:
        words = f"{path} is of a newer release ({newer[0]}): install that one first."
        raise CopyError(words)


_MIGRATIONS = MigrationRecorder.Migration._meta.db_table


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise CopyError(f"{path} is not a file.")
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    with closing(connection):
        yield connection


def refuse_while_running(folder: Path) -> None:
    """CopyError while bin/up runs on this folder: it holds a lock as long."""
    lock = folder / "up.lock"
    if not lock.exists():
        return
    descriptor = os.open(lock, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CopyError(f"SlotServe runs on {folder}: stop bin/up first.") from None
    finally:
        os.close(descriptor)
