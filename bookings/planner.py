"""The planner's decision: what a lane should run, by which rule, and when to ask again.

Pure: the same situation and time always give the same answer. DESIGN: "The decision".
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta, tzinfo

from bookings.planner_fallback import attempt_after, course, own_attempt
from bookings.planner_rules import (
    applicable,
    choice_in_force,
    live_claims,
    preload_from,
    worthwhile_until,
)
from bookings.sentences import sentence
from bookings.situation import Claim, Decision, Situation, Standing

TICK = timedelta(microseconds=1)  # the least difference of two times


def decide(situation: Situation, now: datetime) -> Decision:
    """What the lane should run at `now`. Until `reconsider_at` the same facts, or those after
    the decision was carried out, give the same answer; None: they always will."""
    answer = _answer(situation, now)
    carried_out = replace(situation, order=standing_after(situation.order, answer, now))
    settled = _answer(carried_out, now)
    later = sorted({*_moments(situation, now), *_moments(carried_out, now)})
    changes = (
        moment
        for moment in later
        if _answer(situation, moment) != answer or _answer(carried_out, moment) != settled
    )
    return replace(answer, reconsider_at=next(changes, None))


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


def _answer(situation: Situation, now: datetime) -> Decision:
    """The decision but for when to ask again."""
    ruling = applicable(situation, now)
    taken = course(situation, ruling, now)
    claim = ruling.served
    return Decision(
        target=taken.target,
        rule=ruling.rule,
        sentence=sentence(situation, ruling, taken, now),
        reconsider_at=None,
        booking_id=claim.booking_id if claim is not None else None,
        owner_id=claim.owner_id if claim is not None and ruling.rule == 1 else None,
        is_fallback=taken.is_fallback,
        booking_start=claim.start if claim is not None else None,
        booking_preset=claim.target.preset if claim is not None and claim.target else "",
    )


def _moments(situation: Situation, now: datetime) -> Iterator[datetime]:
    """Every later moment at which the answer could change while the facts stay.

    Nothing beyond the first live booking's start, or end if it has begun, need be looked at: the
    answer certainly changes there.
    """
    candidates = [_next_midnight(now, situation.zone)]
    for claim in live_claims(situation, now)[:1]:
        candidates += _moments_of(claim, situation, now)
    if situation.choice is not None:
        candidates.append(situation.choice.until)
    for failure in situation.failures:
        candidates.append(own_attempt(failure))
        if situation.default is not None:
            candidates.append(attempt_after(situation, failure, situation.default) or now)
    return (moment for moment in candidates if moment > now)


def _moments_of(claim: Claim, situation: Situation, now: datetime) -> list[datetime]:
    choice = choice_in_force(situation, now)
    idles = (situation.default, choice.target if choice is not None else None)
    return [
        claim.active_from,
        claim.end,
        preload_from(claim, situation.margins),
        *(
            worthwhile_until(idle, claim, situation.margins) + TICK
            for idle in idles
            if idle is not None
        ),
    ]


def _next_midnight(now: datetime, zone: tzinfo) -> datetime:
    """When sentences begin to name other days; in UTC, as all arithmetic is."""
    tomorrow = now.astimezone(zone).date() + timedelta(days=1)
    return datetime.combine(tomorrow, time(), tzinfo=zone).astimezone(UTC)
