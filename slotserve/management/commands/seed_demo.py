"""seed_demo: fill an unused installation with a made-up company, for looking at pages."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from lanes.refusals import Refusal
from slotserve.demo.scale import Scale
from slotserve.demo.seeding import seed

LIMITS = {
    "lanes": (1, 500),
    "members": (1, 10_000),
    "bookings": (0, 200_000),
    "days": (1, 3_650),
    "requests": (0, 100),
}


class Command(BaseCommand):
    """The same numbers give the same company; none of its hosts exists."""

    help = "Fill an unused installation with a made-up company: members, lanes, bookings, usage."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """[--lanes N] [--members N] [--bookings N] [--days N] [--requests N] [--password WORD]."""
        known = Scale()
        parser.add_argument("--lanes", type=int, default=known.lanes)
        parser.add_argument("--members", type=int, default=known.members)
        parser.add_argument("--bookings", type=int, default=known.bookings)
        parser.add_argument("--days", type=int, default=known.days, help="of history")
        parser.add_argument(
            "--requests", type=int, default=known.requests, help="of each booking, about"
        )
        parser.add_argument(
            "--password", default="", help="of everybody; without one nobody logs in"
        )

    def handle(self, *args: object, **options: Any) -> None:
        """Fill, or say why not."""
        for name, (least, most) in LIMITS.items():
            if not least <= options[name] <= most:
                raise CommandError(f"--{name}: give a number from {least} to {most:,}.")
        scale = Scale(**{name: options[name] for name in LIMITS})
        made = seed(scale, options["password"])
        if isinstance(made, Refusal):
            raise CommandError(made.words)
        lanes, members = len(made.lanes), len(made.members)
        self.stdout.write(
            f"Made {lanes} lanes and {members} members. The administrator is "
            f"{made.administrator.username}, the first member {made.members[0].username}."
        )
