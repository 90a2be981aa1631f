"""create_token: an API token for a script, printed alone."""

from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from gateway.limits import RateLimits
from gateway.models import Scope
from gateway.publish import publish
from gateway.tokens import DEFAULT_SCOPES, create_token
from lanes import clock
from lanes.models import Lane
from lanes.refusals import Refusal
from wire.sealing import has_table_keys

MOST_DAYS = 36500


class Command(BaseCommand):
    """Make an API token for a user and print it, alone."""

    help = "Make an API token for a user and print it, alone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """USER [--create-user] [--scope S]… [--lane L]… [--days N] and limits a minute."""
        parser.add_argument("user", help="username")
        parser.add_argument("--create-user", action="store_true", help="make the user if missing")
        parser.add_argument(
            "--scope",
            action="append",
            help=f"one of {', '.join(Scope.values)}; may be repeated "
            f"(default: {', '.join(DEFAULT_SCOPES)})",
        )
        parser.add_argument("--lane", action="append", default=[], help="slug (default: all lanes)")
        parser.add_argument("--days", type=int, help="expires after so many days (default: never)")
        for what in ("requests", "tokens"):
            words = f"{what} that it may use in a minute (default: no limit but its owner's)"
            parser.add_argument(f"--{what}-per-minute", type=int, metavar="N", help=words)

    def handle(self, *args: object, **options: Any) -> None:
        """Make it, let the gateway know, print it."""
        text = _make(options)
        # The next line of a script uses it: do not wait for the worker.
        if has_table_keys():
            publish()
        self.stdout.write(text)


@transaction.atomic
def _make(options: dict[str, Any]) -> str:
    made = create_token(
        owner=_owner(options["user"], is_made=options["create_user"]),
        name="made by create_token",
        scopes=options["scope"] or DEFAULT_SCOPES,
        lanes=_lanes(options["lane"]),
        expires_at=_expiry(options["days"]),
        rate_limits=RateLimits(options["requests_per_minute"], options["tokens_per_minute"]),
    )
    if isinstance(made, Refusal):
        raise CommandError(made.words)
    return made[1]


def _owner(username: str, *, is_made: bool) -> User:
    user = User.objects.filter(username=username).first()
    if user is not None:
        return user
    if not is_made:
        raise CommandError(f"There is no user {username!r}: add --create-user to make one.")
    user = User(username=username)
    user.set_unusable_password()
    try:
        user.full_clean()
    except ValidationError as error:
        raise CommandError(f"{username!r} cannot be a username: {error.messages[0]}") from None
    user.save()
    return user


def _lanes(slugs: list[str]) -> list[Lane]:
    lanes = list(Lane.objects.filter(slug__in=slugs))
    missing = sorted(set(slugs) - {lane.slug for lane in lanes})
    if missing:
        known = ", ".join(Lane.objects.values_list("slug", flat=True)) or "there are none yet"
        raise CommandError(f"There is no lane {', '.join(missing)}; lanes: {known}.")
    return lanes


def _expiry(days: int | None) -> datetime | None:
    if days is None:
        return None
    if not 1 <= days <= MOST_DAYS:
        raise CommandError(f"--days takes 1 to {MOST_DAYS}.")
    return clock.database_now() + timedelta(days=days)
