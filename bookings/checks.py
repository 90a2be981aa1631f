"""System checks of bookings."""

from collections.abc import Sequence

from django.apps import AppConfig
from django.core.checks import CheckMessage
from django.core.checks import Error as CheckError
from django.db import connections

from bookings.guards import guards_present, table_exists


def check_guards(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **_: object,
) -> list[CheckMessage]:
    """slotserve.E001: a database with bookings must refuse overlaps by itself."""
    unguarded = (
        alias
        for alias in databases or ()
        if table_exists(connections[alias]) and not guards_present(alias)
    )
    return [
        CheckError(
            f"The database {alias!r} lacks its guards against overlapping bookings.",
            hint="Run `manage.py migrate`. On PostgreSQL, restore the exclusion constraint.",
            id="slotserve.E001",
        )
        for alias in unguarded
    ]
