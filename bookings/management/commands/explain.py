"""`manage.py explain [LANE] [--at TIME]`: what is decided, and from what. Applies nothing."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from bookings.explaining import explain_all
from lanes import clock
from lanes.models import Lane

YEARS = (1970, 9000)  # what can be reckoned with on every side


class Command(BaseCommand):
    """Print each lane's facts and decision."""

    help = "Print what bears on each lane, or one, and what is decided from it. Changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """LANE and --at."""
        parser.add_argument("lane", nargs="?", help="a lane's short name; without it, every lane")
        parser.add_argument(
            "--at", help="another moment, such as 2030-01-15T14:00+01:00; without an offset, UTC"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Parse, ask, print."""
        lanes = None if options["lane"] is None else [_lane(options["lane"])]
        now = clock.database_now() if options["at"] is None else _moment(options["at"])
        self.stdout.write(explain_all(lanes, now) or "There are no lanes yet.")


def _lane(slug: str) -> Lane:
    lane = Lane.objects.filter(slug=slug).first()
    if lane is None:
        known = ", ".join(Lane.objects.order_by("slug").values_list("slug", flat=True)) or "none"
        raise CommandError(f"There is no lane {slug!r}. Lanes: {known}.")
    return lane


def _moment(text: str) -> datetime:
    try:
        moment = parse_datetime(text)
    except ValueError as error:
        raise CommandError(f"--at {text!r}: {error}.") from error
    if moment is None:
        raise CommandError(f"--at {text!r} is not a time: write it as 2030-01-15T14:00+01:00.")
    if not YEARS[0] <= moment.year <= YEARS[1]:
        raise CommandError(f"--at {text!r}: give a year from {YEARS[0]} to {YEARS[1]}.")
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)
