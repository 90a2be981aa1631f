"""From SQLite to PostgreSQL, and what a restored backup does: a file's rows into our database."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection

from slotserve.database import mark_moved
from slotserve.databases.copying import Tell, copy_all
from slotserve.databases.errors import CopyError
from slotserve.databases.sqlite_files import (
    bring_up_to_date,
    copy_file,
    held_still,
    opened,
    refuse_foreign,
)
from slotserve.databases.tables import Summary

SOURCE = "copied_from"


def move_from_sqlite(source: Path, tell: Tell) -> dict[str, Summary]:
    """Copy the file's rows into the empty PostgreSQL database of DATABASE_URL.

    The file is held still meanwhile, and stays as it is. CopyError with a sentence; then the new
    database is as empty as before.
    """
    if connection.vendor != "postgresql":
        words = "DATABASE_URL names no PostgreSQL database: set it to the new one, and try again."
        raise CopyError(words)
    refuse_foreign(source)
    try:
        with held_still(source), TemporaryDirectory(prefix="slotserve-move-") as folder:
            snapshot = Path(folder) / "database.sqlite3"
            copy_file(source, snapshot)
            return fill_from(snapshot, tell, before_commit=partial(mark_moved, source))
    except OSError as error:
        raise CopyError(f"Nothing was moved: {error}.") from error


def fill_from(
    snapshot: Path, tell: Tell, *, before_commit: Callable[[], object] = lambda: None
) -> dict[str, Summary]:
    """Our database, migrated and else empty, gets the rows of a file that is ours to change."""
    refuse_foreign(snapshot)
    try:
        bring_up_to_date(DEFAULT_DB_ALIAS)
    except DatabaseError as error:
        raise CopyError(f"The new database cannot be used: {error}") from error
    with opened(snapshot, SOURCE):
        return copy_all(SOURCE, DEFAULT_DB_ALIAS, tell, before_commit=before_commit)
