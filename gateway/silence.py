"""Lanes that nobody is using, as far as edges' reports and the usage stream are sure."""

import logging
from collections.abc import Collection

import redis

from lanes import barrier, ticks
from wire.edges import SILENT_AFTER_SECONDS, EdgeReport
from wire.usage import USAGE_WAITING

log = logging.getLogger(__name__)
GONE_AFTER_MS = 600_000  # an edge that has said nothing for so long has no request any more


def silent_lanes(slugs: Collection[str]) -> set[str]:
    """Those of the lanes with no request in flight, when all that came are in the database.

    None of them while Valkey does not answer, no edge is there, one is silent, or records wait.
    """
    reports = barrier.read_reports()
    if reports is None or _waits():
        return set()
    there = [report for report in reports.by_edge.values() if not report.goodbye]
    ages = {report.edge_id: reports.now_ms - report.at_ms for report in there}
    heard = [report for report in there if ages[report.edge_id] < GONE_AFTER_MS]
    if not heard or any(ages[r.edge_id] > SILENT_AFTER_SECONDS * 1000 for r in heard):
        return set()
    return {slug for slug in slugs if not any(_in_flight(report, slug) for report in heard)}


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
