"""Tokens of the pages themselves: short-lived, for one session of one browser, shown in no list."""

import logging
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction

from gateway.models import ApiToken, Scope
from gateway.tokens import create_token, digest
from lanes import clock, ticks
from lanes.refusals import Refusal

log = logging.getLogger(__name__)

LIFETIME = timedelta(minutes=15)
MOST_LIVING = 20  # of one session: windows of one browser; the oldest goes
NAME = "Playground"


def make_browser_token(owner: User, session_key: str) -> tuple[str, datetime] | Refusal:
    """A token that calls models until its session ends, 15 minutes at most: its text, its expiry.

    Those of its owner that are over are deleted, so that nothing piles up. Refusals: of
    `create_token`.
    """
    now = clock.database_now()
    expires_at = now + LIFETIME
    with transaction.atomic():
        made = create_token(
            owner=owner,
            name=NAME,
            scopes=[Scope.INFERENCE],
            lanes=[],
            expires_at=expires_at,
            session=digest(session_key),
        )
        if isinstance(made, Refusal):
            return made
        token, text = made
        _tidy(token, now)
    return text, expires_at


def end_session(session_key: str) -> None:
    """The session is over, and so are its tokens."""
    with transaction.atomic():
        living = ApiToken.objects.filter(session=digest(session_key), revoked_at=None)
        ended = living.update(revoked_at=clock.database_now())
        if ended:
            ticks.plan_soon()
            log.info("tokens of a session revoked count=%s", ended)


def _tidy(token: ApiToken, now: datetime) -> None:
    of_browsers = ApiToken.objects.filter(owner=token.owner).exclude(session="")
    of_browsers.filter(expires_at__lte=now).delete()
    of_browsers.filter(revoked_at__isnull=False).delete()
    living = of_browsers.filter(session=token.session).order_by("-pk")
    surplus = list(living.values_list("pk", flat=True)[MOST_LIVING:])
    ApiToken.objects.filter(pk__in=surplus).delete()
