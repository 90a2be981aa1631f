"""Every table of the product: its rows as Python values, its digest, its highest id."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.apps import apps
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

MADE_BY_MIGRATE = (Permission, ContentType)  # with numbers of their own: a copy replaces them
CHUNK = 1000  # rows held at once

Model = type[models.Model]
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """A table's rows, counted and hashed: two databases with the same ones hold the same."""

    rows: int
    digest: str


def all_models() -> list[Model]:
    """One for each table, those between two others included."""
    found = apps.get_models(include_auto_created=True)
    return [model for model in found if model._meta.managed and not model._meta.proxy]


def columns(model: Model) -> list["models.Field[Any, Any]"]:
    """The fields that are columns."""
    return list(model._meta.concrete_fields)


def read_rows(model: Model, alias: str) -> Iterator[Row]:
    """Every row in the order of its key, as Python values: the same from either database."""
    names = [field.attname for field in columns(model)]
    rows = model._base_manager.using(alias).order_by("pk").values_list(*names)
    return rows.iterator(chunk_size=CHUNK)


def has_rows(model: Model, alias: str) -> bool:
    """Whether there is anything in it."""
    return model._base_manager.using(alias).exists()


def summary(rows: Iterable[Row]) -> Summary:
    """Their number and SHA-256."""
    digest, count = hashlib.sha256(), 0
    for row in rows:
        count += 1
        digest.update(json.dumps(_plain(row), sort_keys=True).encode() + b"\n")
    return Summary(count, digest.hexdigest())


def highest_ids(alias: str) -> dict[str, int]:
    """By table, the highest number ever given: those of deleted rows are never given again."""
    connection = connections[alias]
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT name, seq FROM sqlite_sequence")
            return dict(cursor.fetchall())
        found = {}
        for model in _numbered():
            cursor.execute(f"SELECT last_value, is_called FROM {_sequence(connection, model)}")  # noqa: S608
            last, is_called = cursor.fetchone()
            found[model._meta.db_table] = last if is_called else 0
        return found


def go_on_from(alias: str, highest: dict[str, int]) -> None:
    """Give new rows numbers above these."""
    connection = connections[alias]
    with connection.cursor() as cursor:
        for model in _numbered():
            table = model._meta.db_table
            last = highest.get(table, 0)
            if connection.vendor == "sqlite":
                cursor.execute("DELETE FROM sqlite_sequence WHERE name = %s", [table])
                cursor.execute("INSERT INTO sqlite_sequence VALUES (%s, %s)", [table, last])
            else:
                name = _sequence(connection, model)
                cursor.execute("SELECT setval(%s, %s, %s)", [name, max(last, 1), last > 0])


def _numbered() -> list[Model]:
    """Models whose key the database counts up."""
    return [model for model in all_models() if isinstance(model._meta.pk, models.AutoField)]


def _sequence(connection: BaseDatabaseWrapper, model: Model) -> str:
    with connection.cursor() as cursor:
        column = model._meta.pk.column
        cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", [model._meta.db_table, column])
        name: str = cursor.fetchone()[0]
        return name


def _plain(value: Any) -> Any:
    """The same for values that mean the same: a zone, a 1.0 of JSON, an order of keys differ."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, str | int | float | None) else str(value)
