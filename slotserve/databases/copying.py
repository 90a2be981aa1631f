"""Copying everything from one database to another, all of it or nothing, and comparing both."""

from collections.abc import Callable, Iterator
from itertools import islice

from django.db import DatabaseError, OperationalError, connections, transaction

from bookings.guards import guards_present
from slotserve.databases.errors import CopyError
from slotserve.databases.tables import (
    CHUNK,
    MADE_BY_MIGRATE,
    Model,
    Row,
    Summary,
    all_models,
    columns,
    go_on_from,
    has_rows,
    highest_ids,
    read_rows,
    summary,
)

LOCK_SECONDS = 10  # for whoever still writes to the new database
Tell = Callable[[str], object]


def copy_all(
    source: str, target: str, tell: Tell, *, before_commit: Callable[[], object] = lambda: None
) -> dict[str, Summary]:
    """Copy every table between these aliases, both migrated; answers what there is, by table.

    One transaction: a refusal, an error or a kill leaves the target as it was. CopyError when the
    target holds anything, when a value does not fit, or when the two differ afterwards.
    """
    try:
        with transaction.atomic(using=target):
            _take_for_ourselves(target)
            _refuse_unless_empty(target)
            _clear(target)
            copied = {m._meta.db_table: _copy(m, source, target, tell) for m in all_models()}
            go_on_from(target, highest_ids(source))
            connections[target].check_constraints()
            _compare(copied, target)
            before_commit()
    except DatabaseError as error:
        raise CopyError(_sentence(error)) from error
    return copied


def _take_for_ourselves(target: str) -> None:
    """Nobody else may write to it meanwhile; SQLite's transaction sees to that by itself."""
    if connections[target].vendor != "postgresql":
        return
    names = ", ".join(f'"{model._meta.db_table}"' for model in all_models())
    try:
        with connections[target].cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
            cursor.execute(f"LOCK TABLE {names} IN EXCLUSIVE MODE")
    except OperationalError as error:
        words = "The new database is in use: stop whatever runs on it, and try again."
        raise CopyError(words) from error


def _refuse_unless_empty(target: str) -> None:
    full = [m for m in all_models() if m not in MADE_BY_MIGRATE and has_rows(m, target)]
    if full:
        names = ", ".join(model._meta.db_table for model in full[:3])
        raise CopyError(
            f"The new database is not empty ({names}{', …' if len(full) > 3 else ''}): "
            "give an empty one; nothing is ever merged or overwritten."
        )


def _clear(target: str) -> None:
    for model in MADE_BY_MIGRATE:
        model._base_manager.using(target)._raw_delete(target)


def _copy(model: Model, source: str, target: str, tell: Tell) -> Summary:
    connection = connections[target]
    fields = columns(model)
    names = ", ".join(connection.ops.quote_name(str(field.column)) for field in fields)
    places = ", ".join(["%s"] * len(fields))
    table = connection.ops.quote_name(model._meta.db_table)
    statement = f"INSERT INTO {table} ({names}) VALUES ({places})"  # noqa: S608
    with connection.cursor() as cursor:

        def written(rows: Iterator[Row]) -> Iterator[Row]:
            while chunk := list(islice(rows, CHUNK)):
                cursor.executemany(statement, [_prepared(model, row, target) for row in chunk])
                yield from chunk

        try:
            found = summary(written(read_rows(model, source)))
        except (DatabaseError, ValueError) as error:
            raise CopyError(_sentence(error, model._meta.db_table)) from error
    tell(f"{model._meta.db_table}: {found.rows}")
    return found


def _prepared(model: Model, row: Row, target: str) -> Row:
    pairs = zip(columns(model), row, strict=True)
    return tuple(field.get_db_prep_save(value, connections[target]) for field, value in pairs)


def _compare(copied: dict[str, Summary], target: str) -> None:
    for model in all_models():
        table = model._meta.db_table
        if summary(read_rows(model, target)) != copied[table]:
            raise CopyError(f"The copy of {table} is not what was read: nothing was changed.")
    if not guards_present(target):
        raise CopyError(
            "The new database lacks its guards against overlapping bookings: make it anew."
        )


def _sentence(error: Exception, table: str = "") -> str:
    reason = " ".join(str(error).split()).rstrip(".")
    if "disk is full" in reason or "No space left" in reason:
        return f"There is no room for the copy: {reason}. Nothing was changed; make some first."
    where = f" in {table}" if table else ""
    return (
        f"The new database does not take a row{where}: {reason}. Nothing was changed; mend that "
        "row in the old one, and try again."
    )
