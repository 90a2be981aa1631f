"""Facts for the planner's tests, in few words."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from bookings.situation import (
    Choice,
    Claim,
    Closure,
    Decision,
    Failure,
    Report,
    Situation,
    Standing,
    Target,
)
from tests.builders import NOON

LOADS = {"a": 90.0, "big": 240.0, "c": 30.0, "d": 60.0}  # seconds; d is the lane's default
REVISIONS = {"a": 1, "big": 2, "c": 3, "d": 4}


def t(text: str) -> datetime:
    """A time of the tests' day: "14:00" or "14:00:30.5"; "+1 09:00" is the next day's."""
    days, _, text = text.rpartition(" ")
    hours, minutes, seconds = ([float(part) for part in text.split(":")] + [0.0])[:3]
    midnight = NOON.replace(hour=0) + timedelta(days=int(days or 0))
    return midnight + timedelta(hours=hours, minutes=minutes, seconds=seconds)


def target(preset: str, load: float | None = None, revision: int | None = None) -> Target:
    """A target of this name; the same name is the same revision unless another is given."""
    return Target(revision or REVISIONS[preset], preset, LOADS[preset] if load is None else load)


def slot(
    preset: str | None,
    start: str = "14:00",
    end: str = "15:00",
    booking_id: int = 1,
    *,
    confirmed: str = "08:00",
    load: float | None = None,
) -> Claim:
    """A confirmed booking of a preset, or of the whole GPU (None); owner = 100 + its number."""
    wanted = None if preset is None else target(preset, load)
    return Claim(booking_id, 100 + booking_id, t(start), t(end), t(confirmed), wanted)


def chosen(preset: str | None, until: str = "18:00", made: str = "09:00") -> Choice:
    """An administrator's choice."""
    return Choice(None if preset is None else target(preset), t(made), t(until))


def closed(start: str, end: str | None = None, reason: str = "") -> Closure:
    """Maintenance."""
    return Closure(t(start), None if end is None else t(end), reason)


def ordered(
    preset: str | None,
    rule: int = 5,
    claim: Claim | None = None,
    *,
    at: str = "09:00",
    is_fallback: bool = False,
) -> Standing:
    """The lane's present order, of generation 7."""
    return Standing(
        target=None if preset is None else target(preset),
        generation=7,
        ordered_at=t(at),
        rule=rule,
        booking_id=claim.booking_id if claim else None,
        owner_id=claim.owner_id if claim and rule == 1 else None,
        is_fallback=is_fallback,
        booking_start=claim.start if claim else None,
        booking_preset=claim.target.preset if claim and claim.target else "",
    )


def reported(preset: str, phase: str, since: str, generation: int = 7) -> Report:
    """What the host says of a server."""
    return Report(generation, REVISIONS[preset], phase, t(since))


def failed(preset: str, at: str, count: int = 1) -> Failure:
    """A preset's failures in force."""
    return Failure(REVISIONS[preset], count, t(at))


def lane(*claims: Claim, default: str | Target | None = "d", **facts: Any) -> Situation:
    """A lane whose default is d, with nothing ordered unless said."""
    empty = Situation(
        lane="alpha",
        is_enabled=True,
        claims=claims,
        choice=None,
        default=target(default) if isinstance(default, str) else default,
        order=None,
        report=None,
        failures=(),
    )
    return replace(empty, **facts)


def standing_after(order: Standing | None, decision: Decision, now: datetime) -> Standing:
    """The order that carries a decision out: a generation of its own only for a new target."""
    before = order.target.revision_id if order is not None and order.target is not None else None
    wanted = decision.target.revision_id if decision.target is not None else None
    is_same = order is not None and before == wanted
    generation = order.generation if order is not None else 0
    return Standing(
        target=decision.target,
        generation=generation if is_same else generation + 1,
        ordered_at=order.ordered_at if order is not None and is_same else now,
        rule=decision.rule,
        booking_id=decision.booking_id,
        owner_id=decision.owner_id,
        is_fallback=decision.is_fallback,
        booking_start=decision.booking_start,
        booking_preset=decision.booking_preset,
    )


def obeyed(situation: Situation, decision: Decision, now: datetime) -> Situation:
    """The same facts once the decision is the lane's order."""
    return replace(situation, order=standing_after(situation.order, decision, now))


def bare(decision: Decision) -> Decision:
    """A decision without the moment at which to ask again."""
    return replace(decision, reconsider_at=None)
