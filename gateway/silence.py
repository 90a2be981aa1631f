"""Lanes that nobody is using, as far as edges' reports and the usage stream are sure."""

import logging
from collections.abc import Collection
from datetime import datetime, timedelta

import redis
from django.conf import settings

from bookings.rule_keeping import Silence
from lanes import barrier, ticks
from wire.edges import SILENT_AFTER_SECONDS, EdgeReport
from wire.usage import USAGE_WAITING

log = logging.getLogger(__name__)
HEARD = "ss:heard"  # since when edges are heard without a gap, and when they last were
GONE_AFTER_MS = 600_000  # an edge that has said nothing for so long has no request any more


def listen(slugs: Collection[str], now: datetime) -> Silence:
    """Those of the lanes with no request in flight, when all that came are in the database, and
    since when edges were heard without a gap.

    None of them while Valkey does not answer, no edge is there, one is silent, or records wait.
    To be asked again and again: what was not asked for longer than a few beats is a gap, too.
    """
    heard = _heard()
    since = _since(now, is_heard=bool(heard))
    if since is None or _waits():
        return Silence((), since)
    used = (slug for slug in slugs if any(_in_flight(report, slug) for report in heard))
    return Silence(frozenset(slugs).difference(used), since)


def _heard() -> list[EdgeReport]:
    """The edges that are there; none where Valkey does not answer, or one of them is silent."""
    reports = barrier.read_reports()
    if reports is None:
        return []
    there = [report for report in reports.by_edge.values() if not report.goodbye]
    ages = {report.edge_id: reports.now_ms - report.at_ms for report in there}
    heard = [report for report in there if ages[report.edge_id] < GONE_AFTER_MS]
    is_one_silent = any(ages[r.edge_id] > SILENT_AFTER_SECONDS * 1000 for r in heard)
    return [] if is_one_silent else heard


def _since(now: datetime, *, is_heard: bool) -> datetime | None:
    """Since when they were heard at each look, kept in Valkey; None: they are not now."""
    try:
        if not is_heard:
            ticks.valkey().delete(HEARD)
            return None
        kept = ticks.valkey().get(HEARD)
        since, last = kept.decode().split() if isinstance(kept, bytes) else ("", "")
        is_on = bool(last) and timedelta() <= now - datetime.fromisoformat(last) <= _gap()
        begins = datetime.fromisoformat(since) if is_on else now
        ticks.valkey().set(HEARD, f"{begins.isoformat()} {now.isoformat()}")
    except redis.RedisError as error:
        log.warning("since when edges are heard is not known reason=%s", error)
        return None
    return begins


def _gap() -> timedelta:
    """Longer than this between two looks, and what was between them is not known."""
    return timedelta(seconds=max(60.0, 4 * settings.SLOTSERVE_TICK_SECONDS))


def _in_flight(report: EdgeReport, slug: str) -> int:
    count = report.lanes.get(slug)
    return count.in_flight if count else 0


def _waits() -> bool:
    """Whether usage records are not in the database yet."""
    try:
        return int(ticks.valkey().get(USAGE_WAITING) or 0) > 0
    except redis.RedisError as error:
        log.warning("usage that waits not read reason=%s", error)
        return True
