"""A lane's facts and the decision they lead to, as text for a person. Applies nothing."""

from collections.abc import Iterator
from datetime import datetime, tzinfo

from bookings.facts import situations
from bookings.planner import decide
from bookings.situation import Claim, Closure, Decision, Situation, Target
from lanes.models import Lane
from wire.words import clock as words_of


def explain(lane: Lane, now: datetime) -> str:
    """What bears on a lane and what would be decided, at `now` or at another moment.

    Orders, reports and failures are those of the present: nobody knows later ones.
    """
    return explain_all([lane], now)


def explain_all(lanes: list[Lane] | None, now: datetime) -> str:
    """The same of several lanes, or of all, by name; eight queries."""
    found = sorted(situations(lanes, now).values(), key=lambda situation: situation.lane)
    return "\n\n".join("\n".join(_lines(situation, now)) for situation in found)


def _lines(situation: Situation, now: datetime) -> Iterator[str]:
    decision = decide(situation, now)
    zone = situation.zone
    disabled = "" if situation.is_enabled else " (disabled)"
    yield f"{situation.lane}{disabled} at {words_of(now, now, zone)}"
    yield f"  decision     rule {decision.rule}: {decision.sentence}"
    yield f"  target       {_target(decision.target)}{_change(situation, decision)}"
    if decision.reconsider_at:
        yield f"  ask again    {words_of(decision.reconsider_at, now, zone)}"
    yield f"  default      {_target(situation.default)}"
    if situation.choice:
        until = words_of(situation.choice.until, now, zone)
        yield f"  choice       {_target(situation.choice.target)} until {until}"
    yield from _standing_lines(situation, now)
    for closure in situation.closures:
        yield f"  maintenance  {_closure(closure, now, zone)}"
    for claim in sorted(situation.claims, key=lambda claim: claim.start):
        yield f"  booking      {_claim(claim, now, zone)}"
    for failure in situation.failures:
        last = words_of(failure.failed_at, now, zone)
        yield f"  failing      revision id {failure.revision_id}, {failure.count} in a row: {last}"


def _standing_lines(situation: Situation, now: datetime) -> Iterator[str]:
    order, report = situation.order, situation.report
    if order:
        since = words_of(order.ordered_at, now, situation.zone)
        kept = f" for booking #{order.booking_id}" if order.booking_id else ""
        yield f"  order        g{order.generation} {_target(order.target)}{kept}, since {since}"
    if report:
        since = words_of(report.phase_since, now, situation.zone)
        yield f"  server       g{report.generation} {report.phase} since {since}"


def _claim(claim: Claim, now: datetime, zone: tzinfo) -> str:
    start, end = words_of(claim.start, now, zone), words_of(claim.end, now, zone)
    what = _target(claim.target) if claim.target else "whole GPU"
    state = ", in progress" if claim.active_from <= now else ""
    return f"#{claim.booking_id} {start} to {end}: {what}{state}"


def _closure(closure: Closure, now: datetime, zone: tzinfo) -> str:
    start = words_of(closure.start, now, zone)
    end = words_of(closure.end, now, zone) if closure.end else "an open end"
    return f"{start} to {end}" + (f": {closure.reason}" if closure.reason else "")


def _target(target: Target | None) -> str:
    if target is None:
        return "nothing"
    return f"{target.preset} (revision id {target.revision_id}, load ≈ {target.load_seconds:.0f} s)"


def _change(situation: Situation, decision: Decision) -> str:
    """Whether the decision differs from what is ordered now."""
    ordered = situation.order.target if situation.order else None
    before = ordered.revision_id if ordered else None
    after = decision.target.revision_id if decision.target else None
    return "" if before == after else f"  (ordered now: {_target(ordered)})"
