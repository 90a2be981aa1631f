"""`manage.py backup FILE`: database and keys in one file, while the product runs."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from slotserve.databases.backing_up import backup
from slotserve.databases.errors import CopyError


class Command(BaseCommand):
    """The file holds password hashes and keys: mode 0600, and keep it so."""

    help = "Write the database and the data folder's keys into one new file (.tar.gz)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """FILE."""
        parser.add_argument("file", type=Path, help="a file that does not exist yet")

    def handle(self, *args: Any, **options: Any) -> None:
        """One line."""
        file: Path = options["file"].absolute()
        try:
            tables = backup(file, self.stderr.write)
        except CopyError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            raise CommandError("Interrupted: no backup was made.", returncode=130) from None
        rows = sum(table.rows for table in tables.values())
        size = file.stat().st_size / 2**20
        self.stdout.write(f"{file}: {rows} rows of {len(tables)} tables, {size:.1f} MB")
