"""The one clock of planning and hosts: the database's.

Callers read it once, after their locks, and pass the value on; pure functions take it as `now`.
"""

from datetime import UTC, datetime

from django.db import connection


def database_now() -> datetime:
    """The database's present time, aware and UTC, with at least milliseconds.

    PostgreSQL: `clock_timestamp()`, so it moves within a transaction. SQLite: 'now' with
    milliseconds.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT clock_timestamp()")
            value: datetime = cursor.fetchone()[0]
            return value.astimezone(UTC)
        cursor.execute("SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now')")
        return datetime.fromisoformat(cursor.fetchone()[0]).replace(tzinfo=UTC)
