"""Django's `flush`, which empties the audit trail, too."""

from typing import Any

from django.core.management.commands import flush
from django.db import connections

from lanes import audit_guards


class Command(flush.Command):
    """Take the guards of the audit trail away while everything is deleted on purpose."""

    def handle(self, **options: Any) -> None:
        """Empty, then guard what comes, whatever went wrong."""
        connection = connections[options["database"]]
        audit_guards.remove(connection)
        try:
            super().handle(**options)
        finally:
            audit_guards.install(connection)
