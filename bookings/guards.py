"""The database as the last referee of overlaps, and what its refusals mean.

PostgreSQL has the exclusion constraint of the migrations. SQLite has triggers, which Django drops
whenever it rebuilds the table. Both are put back after every migration, and checked for.
"""

import logging
import sqlite3
from enum import Enum, auto

import psycopg
from django.apps import AppConfig, apps
from django.db import (
    DEFAULT_DB_ALIAS,
    DataError,
    Error,
    IntegrityError,
    OperationalError,
    connections,
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper

from bookings.states import OCCUPYING, OVERLAP_CONSTRAINT, TABLE

log = logging.getLogger(__name__)
OVERLAP_TEXT = "slotserve_overlap"
FORMAT_TEXT = "slotserve_time_format"
_TOO_LONG_TEXT = "pattern too complex"  # SQLite of more than 50,000 bytes to look for

_STATES = ", ".join(f"'{state.value}'" for state in OCCUPYING)
# Constants of this project only: nothing that anybody sends.
_IS_TAKEN = f"""
WHEN NEW.state IN ({_STATES}) AND EXISTS (
    SELECT 1 FROM {TABLE} AS other
    WHERE other.lane_id = NEW.lane_id AND other.state IN ({_STATES})
    AND other."end" > NEW."start" AND other."start" < NEW."end"
"""  # noqa: S608
_OVERLAP = f")\nBEGIN SELECT RAISE(ABORT, '{OVERLAP_TEXT}'); END"

# Times are text there, and compare rightly only in the one format that Django writes.
_SECONDS = "[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9]"
_MICROSECONDS = f"{_SECONDS}.[0-9][0-9][0-9][0-9][0-9][0-9]"
_TIMES = ("start", "end", "original_end", "created_at", "confirmed_at", "released_at")
_IS_FOREIGN = " OR ".join(
    f"""NOT (NEW."{name}" GLOB '{_SECONDS}' OR NEW."{name}" GLOB '{_MICROSECONDS}')"""
    for name in _TIMES
)
_FORMAT = f"\nWHEN {_IS_FOREIGN}\nBEGIN SELECT RAISE(ABORT, '{FORMAT_TEXT}'); END"

_INSERT = f"BEFORE INSERT ON {TABLE}"
_UPDATE = f'BEFORE UPDATE OF id, lane_id, "start", "end", state ON {TABLE}'
_BODIES = {
    f"{OVERLAP_CONSTRAINT}_insert": f"{_INSERT}{_IS_TAKEN}{_OVERLAP}",
    f"{OVERLAP_CONSTRAINT}_update": f"{_UPDATE}{_IS_TAKEN}AND other.id <> OLD.id\n{_OVERLAP}",
    "bookings_time_format_insert": f"{_INSERT}{_FORMAT}",
    "bookings_time_format_update": f"BEFORE UPDATE ON {TABLE}{_FORMAT}",
}
STATEMENTS = {name: f"CREATE TRIGGER {name} {body}" for name, body in _BODIES.items()}

_BUSY_STATES = {
    "40P01",  # deadlock
    "40001",  # serialization failure
    "55P03",  # lock timeout
    "57014",  # statement timeout
    "23503",  # what the booking names was deleted meanwhile
}
_TWIN_STATE = "23505"
_TWIN_CODES = {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY}
_BUSY_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class Verdict(Enum):
    """What the database meant by an error."""

    OVERLAP = auto()
    BUSY = auto()
    TWIN = auto()  # somebody else made the same at the same moment
    OTHER = auto()


def verdict(error: Error) -> Verdict:
    """Tell an overlap, a database that is busy and a twin from errors that nobody expected."""
    cause = error.__cause__
    if isinstance(cause, psycopg.Error):
        return _of_postgresql(cause)
    return _of_sqlite(cause) if isinstance(cause, sqlite3.Error) else Verdict.OTHER


def is_chance(error: Exception) -> bool:
    """Whether the database refused for what others did at the same moment: to try again tells."""
    if isinstance(error, OperationalError):
        return True
    chances = {Verdict.OVERLAP, Verdict.BUSY, Verdict.TWIN}
    return isinstance(error, IntegrityError) and verdict(error) in chances


def is_unkeepable(error: Exception) -> bool:
    """Whether no database can keep a value, or look for it: to try again tells nothing."""
    if isinstance(error, DataError | OverflowError):
        return True
    return isinstance(error, OperationalError) and _TOO_LONG_TEXT in str(error)


def guards_present(alias: str = DEFAULT_DB_ALIAS) -> bool:
    """Whether this database itself refuses overlapping bookings."""
    connection = connections[alias]
    if connection.vendor == "sqlite":
        return not _missing(connection)
    return connection.vendor == "postgresql" and _has_exclusion(connection)


def table_exists(connection: BaseDatabaseWrapper) -> bool:
    """Whether the bookings' table is there at all: before the first migration it is not."""
    with connection.cursor() as cursor:
        return TABLE in connection.introspection.table_names(cursor)


def install(connection: BaseDatabaseWrapper) -> None:
    """Put what is missing back: SQLite's triggers, replacing any that differ, or PostgreSQL's
    constraint, unless there are overlaps already, which are told."""
    if not table_exists(connection):
        return
    if connection.vendor == "postgresql":
        if not _has_exclusion(connection):
            _add_exclusion(connection)
        return
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        for name in _missing(connection):
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}")
            cursor.execute(STATEMENTS[name])


def install_after_migrating(sender: AppConfig, using: str, **_: object) -> None:
    """What post_migrate calls."""
    install(connections[using])


def _missing(connection: BaseDatabaseWrapper) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s", [TABLE]
        )
        present = dict(cursor.fetchall())
    return [name for name, statement in STATEMENTS.items() if present.get(name) != statement]


def _add_exclusion(connection: BaseDatabaseWrapper) -> None:
    model = apps.get_model("bookings", "Booking")
    constraint = next(c for c in model._meta.constraints if c.name == OVERLAP_CONSTRAINT)
    try:
        with connection.schema_editor() as editor:
            editor.execute(f"ALTER TABLE {TABLE} DROP CONSTRAINT IF EXISTS {OVERLAP_CONSTRAINT}")
            editor.add_constraint(model, constraint)
    except IntegrityError as error:
        words = " ".join(str(error).split())
        log.error("bookings overlap, and so stay unguarded: cancel one, and migrate: %s", words)


def _has_exclusion(connection: BaseDatabaseWrapper) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_constraint WHERE conname = %s AND conrelid = to_regclass(%s)"
            " AND contype = 'x' AND convalidated AND NOT condeferrable",
            [OVERLAP_CONSTRAINT, TABLE],
        )
        return cursor.fetchone() is not None


def _of_postgresql(cause: psycopg.Error) -> Verdict:
    if cause.sqlstate == "23P01" and cause.diag.constraint_name == OVERLAP_CONSTRAINT:
        return Verdict.OVERLAP
    if cause.sqlstate == _TWIN_STATE:
        return Verdict.TWIN
    return Verdict.BUSY if cause.sqlstate in _BUSY_STATES else Verdict.OTHER


def _of_sqlite(cause: sqlite3.Error) -> Verdict:
    code = cause.sqlite_errorcode
    if code == sqlite3.SQLITE_CONSTRAINT_TRIGGER and str(cause) == OVERLAP_TEXT:
        return Verdict.OVERLAP
    if code in _TWIN_CODES:
        return Verdict.TWIN
    is_gone = code == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
    # The low byte is the primary code: SQLITE_BUSY_SNAPSHOT is a kind of SQLITE_BUSY.
    return Verdict.BUSY if is_gone or code & 0xFF in _BUSY_CODES else Verdict.OTHER
