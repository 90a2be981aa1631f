"""`manage.py restore FILE`: fill an empty database and data folder from a backup."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from slotserve.databases.backing_up import restore
from slotserve.databases.errors import CopyError


class Command(BaseCommand):
    """Backups of SQLite and PostgreSQL go into either."""

    help = "Fill the empty database and data folder from a file that `backup` has written."
    requires_system_checks = []  # there need be no tables yet

    def add_arguments(self, parser: ArgumentParser) -> None:
        """FILE."""
        parser.add_argument("file", type=Path, help="what `manage.py backup` has written")

    def handle(self, *args: Any, **options: Any) -> None:
        """A line for each table, then what to do next."""
        try:
            manifest = restore(options["file"].absolute(), self.stdout.write)
        except CopyError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            raise CommandError("Interrupted: nothing was restored.", returncode=130) from None
        self.stdout.write(
            f"Restored as of {manifest.made_at}; every table was compared with the backup. "
            "Start SlotServe, then run `python manage.py self_check`."
        )
