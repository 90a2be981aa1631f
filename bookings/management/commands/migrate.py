"""Django's `migrate`, which must be able to cure what a check complains of."""

from typing import Any

from django.core.management.commands import migrate
from django.db import connections

from bookings.guards import install
from lanes import audit_guards


class Command(migrate.Command):
    """Put missing guards back before the checks that would stop this command."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Cure, then go on as Django does."""
        connection = connections[options["database"]]
        install(connection)
        audit_guards.install(connection)
        return super().execute(*args, **options)
