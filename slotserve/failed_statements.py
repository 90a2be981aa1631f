"""SQLite: a statement that failed is let go by the thread that made it.

Django closes the cursor of a query that fails, but not that of a BEGIN that waited in vain. Its
error and its traceback hold each other, so it lies there until garbage is looked for, by whichever
thread; that one then needs the mutex of the connection, which the connection's own thread has for
as long as it waits in its next BEGIN. If the one that looks for garbage has begun a transaction,
each waits for the other.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper


def close_what_fails(*, connection: BaseDatabaseWrapper, **_: object) -> None:
    """A connection was made: from now on no failed statement stays open."""
    wrappers = connection.execute_wrappers
    if connection.vendor == "sqlite" and _closing not in wrappers:
        wrappers.insert(0, _closing)  # the last one may be somebody's for a while, who takes it off


def _closing(
    execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
) -> Any:
    try:
        return execute(sql, params, many, context)
    except DatabaseError:
        with suppress(context["connection"].Database.Error):  # it may be closed already
            context["cursor"].close()
        raise
