"""What pages say when the planner or the broker behind them is silent."""

from datetime import UTC, datetime, timedelta

import redis
from django.conf import settings
from django.core.cache import cache
from django.utils.translation import gettext as _

from lanes import ticks
from lanes.telling import moment, tell
from slotserve.live.state import digest_of
from wire.edges import TABLE_HEAD
from wire.words import said

SILENT = timedelta(seconds=max(30.0, 10 * settings.SLOTSERVE_TICK_SECONDS))
KEPT_SECONDS = 5  # pages refresh often; Valkey is asked this seldom, and waited for
_KEY = "route-table-confirmed-at"
_NEVER, _AWAY = 0.0, -1.0

BROKER_AWAY = said(
    "The broker does not answer: what you change is kept, and takes effect when it is back."
)
NEVER_TOLD = said("The gateway has been told nothing yet: are beat and the plan worker running?")


def standing(now: datetime) -> float | None:
    """What is wrong with the whole installation, as a number for `notice`; None: all is well."""
    confirmed_at = float(cache.get_or_set(_KEY, _confirmed_at, KEPT_SECONDS) or _NEVER)
    if confirmed_at in {_AWAY, _NEVER}:
        return confirmed_at
    is_well = datetime.fromtimestamp(confirmed_at, UTC) >= now - SILENT
    return None if is_well else confirmed_at


def notice(now: datetime) -> str:
    """What people should know of the whole installation; empty when all is well."""
    confirmed_at = standing(now)
    if confirmed_at is None:
        return ""
    if confirmed_at == _AWAY:
        return tell(BROKER_AWAY)
    if confirmed_at == _NEVER:
        return tell(NEVER_TOLD)
    since = datetime.fromtimestamp(confirmed_at, UTC)
    words = _("Nothing was planned since %(since)s: are beat and the plan worker running?")
    return words % {"since": moment(since, now)}


def standing_digest(now: datetime) -> str:
    """Of what `notice` says, in whatever zone and language."""
    return digest_of(standing(now))


def notice_context(now: datetime) -> dict[str, str]:
    """For templates: the notice, and its digest by which a page knows that it is old."""
    return {"notice": notice(now), "notice_digest": standing_digest(now)}


def _confirmed_at() -> float:
    """When the planner last confirmed the gateway's table, by the database's clock."""
    try:
        value = ticks.valkey().hget(TABLE_HEAD, "confirmed_at")
    except redis.RedisError:
        return _AWAY
    return float(value) if value else _NEVER
