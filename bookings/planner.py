"""The planner's decision: what a lane should run, by which rule, and when to ask again.

Pure: the same situation and time always give the same answer. DESIGN: "The decision".
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo

from bookings.closures import empty_from
from bookings.planner_fallback import attempt_after, course, own_attempt
from bookings.planner_rules import (
    applicable,
    choice_in_force,
    live_claims,
    preload_from,
    worthwhile_until,
)
from bookings.sentences import sentence
from bookings.situation import Claim, Decision, Situation
from bookings.wall_clock import day_start

TICK = timedelta(microseconds=1)  # the least difference of two times


def decide(situation: Situation, now: datetime) -> Decision:
    """What the lane should run at `now`. Until `reconsider_at` the same facts, and those after
    the decision was carried out, give the same answer; None: they always will."""
    answer = _answer(situation, now)
    later = sorted(moment for moment in _moments(situation, now) if moment > now)
    changes = (moment for moment in later if _answer(situation, moment) != answer)
    return replace(answer, reconsider_at=next(changes, None))


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
    """Every moment at which the answer could change while the facts stay.

    Nothing beyond the first live booking's start, or end if it has begun, need be looked at: the
    answer certainly changes there.
    """
    yield _next_midnight(now, situation.zone)
    for claim in live_claims(situation, now)[:1]:
        yield from _moments_of(claim, situation, now)
    for closure in situation.closures:
        yield from (empty_from(closure, situation.margins), closure.start)
        if closure.end is not None:
            yield closure.end
    if situation.choice is not None:
        yield situation.choice.until
    for failure in situation.failures:
        yield own_attempt(failure)
        if situation.default is not None:
            yield attempt_after(situation, failure, situation.default) or own_attempt(failure)


def _moments_of(claim: Claim, situation: Situation, now: datetime) -> Iterator[datetime]:
    yield from (claim.active_from, claim.end, preload_from(claim, situation.margins))
    choice = choice_in_force(situation, now)
    for idle in (situation.default, choice.target if choice is not None else None):
        if idle is not None:
            yield worthwhile_until(idle, claim, situation.margins) + TICK


def _next_midnight(now: datetime, zone: tzinfo) -> datetime:
    """When sentences begin to name other days; in UTC, as all arithmetic is."""
    tomorrow = now.astimezone(zone).date() + timedelta(days=1)
    return day_start(tomorrow, zone)
