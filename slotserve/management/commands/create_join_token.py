"""create_join_token: the right of one machine to become a host, for bin/join."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from lanes.host_services import note_on
from lanes.joining import MINUTES, create_join_token
from lanes.refusals import Refusal


class Command(BaseCommand):
    """Prints the token alone, so that scripts can take it."""

    help = "Make a token with which one machine, by bin/join, becomes the host KEY."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """KEY ADDRESS [--name NAME] [--minutes N]."""
        parser.add_argument("key", help="names the host for good, such as gpu1")
        parser.add_argument("address", help="its private address, where model servers listen")
        parser.add_argument("--name", default="", help="what people read (default: the key)")
        parser.add_argument("--minutes", type=int, default=MINUTES, help="valid for (%(default)s)")

    def handle(self, *args: object, **options: Any) -> None:
        """Make it, or say why not."""
        wish = {name: options[name] for name in ("key", "address", "name", "minutes")}
        made = create_join_token(actor=None, **wish)
        if isinstance(made, Refusal):
            raise CommandError(made.words)
        note = note_on(made[0].address)
        if note:
            self.stderr.write(f"Note: {note}")
        self.stdout.write(made[1])
