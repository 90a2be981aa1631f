"""The planner: asks the whole question anew for every lane, and writes what has changed.

Safe to skip, to repeat and to run twice at once.
"""

import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from bookings.facts import read_facts, situation_of
from bookings.orders import Result, carry_out
from bookings.planner import decide
from bookings.situation import Decision
from lanes import clock, ticks

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """One tick: what was decided at `now`, by primary keys of lanes."""

    now: datetime
    decisions: Mapping[int, Decision]
    changed: tuple[int, ...]  # order written
    lost: tuple[int, ...]  # another planner was first; nothing written
    failed: tuple[int, ...]  # an error, logged; nothing written

    @property
    def reconsider_at(self) -> datetime | None:
        """The next moment at which a decision can change by itself."""
        moments = (decision.reconsider_at for decision in self.decisions.values())
        return min((moment for moment in moments if moment is not None), default=None)


def plan_lanes(lane_pks: Collection[int] | None = None) -> PlanOutcome:
    """Decide for these lanes, or for all, and write what differs from their orders.

    Nine queries when nothing changes: the clock, and the eight of the facts. A lane that fails is
    logged and skipped. When an answer can change before the next beat, a tick is set for then.
    """
    now, began = clock.database_now(), time.monotonic()
    decisions: dict[int, Decision] = {}
    results: dict[int, Result | None] = {}
    for pk, facts in read_facts(lane_pks, now).items():
        try:
            decision = decide(situation_of(facts), now)
            results[pk] = carry_out(facts, decision)
            decisions[pk] = decision
        except Exception:
            log.exception("lane not planned lane=%s", facts.lane.slug)
            results[pk] = None
    outcome = PlanOutcome(
        now=now,
        decisions=decisions,
        changed=_those(results, Result.WRITTEN),
        lost=_those(results, Result.LOST),
        failed=_those(results, None),
    )
    _set_tick(outcome, time.monotonic() - began)
    return outcome


def _set_tick(outcome: PlanOutcome, elapsed: float) -> None:
    moment = outcome.reconsider_at
    beat = timedelta(seconds=settings.SLOTSERVE_TICK_SECONDS)
    if moment is not None and outcome.now < moment < outcome.now + beat:
        seconds = (moment - outcome.now).total_seconds() - elapsed
        ticks.request_plan_at(moment, max(seconds, 0.0))


def _those(results: Mapping[int, Result | None], wanted: Result | None) -> tuple[int, ...]:
    return tuple(pk for pk, result in results.items() if result is wanted)
