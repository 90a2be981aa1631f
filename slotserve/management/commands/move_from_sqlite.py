"""`manage.py move_from_sqlite FILE`: into the empty PostgreSQL database of DATABASE_URL."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from slotserve.databases.errors import CopyError
from slotserve.databases.moving import move_from_sqlite


class Command(BaseCommand):
    """The SQLite file stays as it is."""

    help = "Copy all rows of a SQLite database into the empty PostgreSQL one of DATABASE_URL."
    requires_system_checks = []  # there need be no tables yet

    def add_arguments(self, parser: ArgumentParser) -> None:
        """FILE."""
        parser.add_argument("file", type=Path, help="such as var/slotserve.sqlite3")

    def handle(self, *args: Any, **options: Any) -> None:
        """A line for each table, then what to do next."""
        try:
            tables = move_from_sqlite(options["file"].absolute(), self.stdout.write)
        except CopyError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            raise CommandError("Interrupted: nothing was moved.", returncode=130) from None
        rows = sum(table.rows for table in tables.values())
        self.stdout.write(
            f"{rows} rows of {len(tables)} tables were copied and compared. Start everything with "
            "this DATABASE_URL, then run `python manage.py self_check`."
        )
