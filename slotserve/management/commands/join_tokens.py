"""join_tokens: which machines may join as hosts, or have; and the end of a token."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from lanes import clock
from lanes.joining import revoke_join_token
from lanes.refusals import Refusal
from slotserve.hosts import JoinTokenView, join_tokens


class Command(BaseCommand):
    """The texts of tokens are not kept, so none is shown."""

    help = "Show the join tokens of the last month, the newest first, or revoke one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """[--json] or --revoke ID."""
        how = parser.add_mutually_exclusive_group()
        how.add_argument("--json", action="store_true", help="one object a token, for programs")
        how.add_argument("--revoke", type=int, metavar="ID", help="end this one")

    def handle(self, *args: object, **options: Any) -> None:
        """Print them, or end one."""
        if options["revoke"] is not None:
            said = revoke_join_token(options["revoke"], actor=None)
            if isinstance(said, Refusal):
                raise CommandError(said.words)
            self.stdout.write(f"The join token {said.pk} for {said.key} is revoked.")
            return
        views = join_tokens(clock.database_now())
        if options["json"]:
            self.stdout.write(json.dumps([_as_json(view) for view in views], default=str))
        for view in views if not options["json"] else []:
            self.stdout.write(_in_words(view))


def _as_json(view: JoinTokenView) -> dict[str, object]:
    token = view.token
    return {
        "id": token.pk,
        "key": token.key,
        "address": token.address,
        "state": view.state,
        "made_by": token.made_by and token.made_by.get_username(),
        "made_at": token.made_at.isoformat(),
        "expires_at": token.expires_at.isoformat(),
    }


def _in_words(view: JoinTokenView) -> str:
    token = view.token
    maker = token.made_by.get_username() if token.made_by else "manage.py"
    return (
        f"{token.pk}: {token.key} at {token.address}, {view.state}, made by {maker}, "
        f"valid until {token.expires_at:%Y-%m-%d %H:%M} UTC"
    )
