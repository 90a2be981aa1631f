"""What a slot would begin with, beside a lane that is planned until it does."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookings.foretelling import Foretold, Lane, Running, Why, Wished, foretell
from bookings.planner import decide
from bookings.situation import Choice, Claim, Closure, Margins, Situation, Standing, Target
from tests.builders import at

SMALL, LARGE, SLOW = Target(1, "small", 30.0), Target(2, "large", 95.0), Target(3, "slow", 600.0)
MARGINS = Margins(buffer=60, stop=20, least_preload=180)
DRAIN = 30.0
STEP = timedelta(seconds=5)  # how often the lane is planned
NEAR = 2 * STEP


def claim(
    start: float = 60, end: float = 120, target: Target | None = LARGE, pk: int = 0, owner: int = 1
) -> Claim:
    return Claim(pk, owner, at(start), at(end), at(0), target)


def lane(
    running: Target | None = SMALL, *, ready: float = 0, default: Target | None = SMALL, **more: Any
) -> Lane:
    standing = Standing(running, 1, at(-10), 5, None, None, is_fallback=False)
    facts = {"closures": (), "choice": None} | more
    restarts = facts.pop("restarts", False)
    situation = Situation("demo", True, (), facts["choice"], default, standing, None, (), MARGINS)
    situation = replace(situation, closures=facts["closures"])
    return Lane(situation, Running(running, at(ready)), at(0), DRAIN, restarts)


def closed(start: float, end: float | None) -> Closure:
    return Closure(at(start), at(end) if end is not None else None)


def chosen(target: Target | None, until: float) -> Choice:
    return Choice(target, at(-1), at(until))


OTHER = claim(0, 60, SMALL, pk=1, owner=2)  # the slot before
WHOLE = claim(0, 60, None, pk=1, owner=2)
SAME = claim(0, 60, LARGE, pk=1, owner=2)
LATER = {"start": 60, "end": 120}  # hours ahead, so that nothing of now bears on it

CASES = [
    # what is wished, the lane, why, seconds from its start to warm, of them waiting, drain first
    ("gap", Wished(claim()), lane(), Why.EARLY, -55, 0, 0),
    ("loaded by default", Wished(claim(target=SMALL)), lane(), Why.LOADED, -3600, 0, 0),
    ("still loading", Wished(claim(0, 60, SMALL)), lane(ready=0.5), Why.AT_ONCE, 30, 30, 0),
    ("at once", Wished(claim(0, 60)), lane(), Why.AT_ONCE, 125, 95, 30),
    (
        "at once, nothing runs",
        Wished(claim(0, 60)), lane(None, default=None), Why.AT_ONCE, 95, 95, 0,
    ),
    ("soon", Wished(claim(1, 60)), lane(None, default=None), Why.AT_ONCE, 35, 35, 0),
    ("same before", Wished(claim(), SAME), lane(LARGE), Why.SAME_BEFORE, -3600, 0, 0),
    ("other before", Wished(claim(), OTHER), lane(), Why.OTHER_BEFORE, 125, 95, 30),
    ("GPU before", Wished(claim(), WHOLE), lane(None), Why.GPU_BEFORE, 95, 95, 0),
    ("other, then a gap", Wished(claim(65, 120), OTHER), lane(), Why.EARLY, -55, 0, 0),
    (
        "same, then a gap too short for the default",
        Wished(claim(63, 120), SAME), lane(LARGE), Why.SAME_BEFORE, -3780, 0, 0,
    ),
    (
        "same, then a gap in which the default is loaded",
        Wished(claim(90, 150), SAME), lane(LARGE), Why.EARLY, -55, 0, 0,
    ),
    ("slow", Wished(claim(target=SLOW)), lane(), Why.EARLY, -30, 0, 0),
    ("slow and soon", Wished(claim(5, 60, SLOW)), lane(), Why.AT_ONCE, 330, 300, 30),
    ("whole GPU", Wished(claim(target=None)), lane(), Why.EARLY, -50, 0, 0),
    ("whole GPU at once", Wished(claim(0, 60, None)), lane(), Why.AT_ONCE, 30, 0, 30),
    (
        "whole GPU, nothing runs",
        Wished(claim(0, 60, None)), lane(None, default=None), Why.LOADED, 0, 0, 0,
    ),
    (
        "whole GPU after a slot",
        Wished(claim(target=None), OTHER), lane(), Why.OTHER_BEFORE, 30, 0, 30,
    ),
    (
        "maintenance until the start",
        Wished(claim()), lane(closures=(closed(30, 60),)), Why.CLOSED_BEFORE, 95, 95, 0,
    ),
    (
        "maintenance into the slot",
        Wished(claim()), lane(closures=(closed(30, 70),)), Why.CLOSED_BEFORE, 695, 695, 0,
    ),
    (
        "maintenance well before",
        Wished(claim()), lane(closures=(closed(10, 20),)), Why.EARLY, -55, 0, 0,
    ),
    (
        "maintenance throughout",
        Wished(claim()), lane(closures=(closed(10, None),)), Why.CLOSED_BEFORE, 3600, 3600, 0,
    ),
    (
        "chosen until then",
        Wished(claim()), lane(LARGE, choice=chosen(LARGE, 300)), Why.LOADED, -3600, 0, 0,
    ),
    (
        "another is chosen",
        Wished(claim(target=SMALL)), lane(LARGE, choice=chosen(LARGE, 300)), Why.EARLY, -120, 0, 0,
    ),
    (
        "the choice ends before",
        Wished(claim()), lane(LARGE, choice=chosen(LARGE, 20)), Why.EARLY, -55, 0, 0,
    ),
    (
        "the server restarts for its owner",
        Wished(claim(), SAME), lane(LARGE, restarts=True), Why.OWNER_CHANGES, 125, 95, 30,
    ),
    (
        "the same owner before",
        Wished(claim(owner=2), SAME), lane(LARGE, restarts=True), Why.SAME_BEFORE, -3475, 0, 0,
    ),
    (
        "another revision of the same",
        Wished(claim(), claim(0, 60, Target(9, "large", 95.0), pk=1)),
        lane(Target(9, "large", 95.0)), Why.OTHER_BEFORE, 125, 95, 30,
    ),
]  # fmt: skip


def seconds_of(found: Foretold, start: datetime) -> float:
    return (found.warm_at - start).total_seconds()


@pytest.mark.parametrize(
    ("wished", "now", "expected"), [(c[1], c[2], c[3:]) for c in CASES], ids=[c[0] for c in CASES]
)
def test_how_a_slot_begins(wished: Wished, now: Lane, expected: tuple[Any, ...]) -> None:
    found = foretell(wished, now)
    told = (found.why, seconds_of(found, wished.claim.start), found.waits, found.drained)
    assert told == expected


@pytest.mark.parametrize(
    ("wished", "now"), [(c[1], c[2]) for c in CASES], ids=[c[0] for c in CASES]
)
def test_the_planner_does_what_was_foretold(wished: Wished, now: Lane) -> None:
    compare(wished, now)


def planned(wished: Wished, now: Lane) -> datetime:
    """When the slot's target is ready, of a lane that is planned again and again from now on, and
    a host that carries it out."""
    claims = tuple(each for each in (wished.before, wished.claim, wished.after) if each)
    order, running, ready_at = now.situation.order, now.running.target, now.running.ready_at
    moment = now.now
    while moment < wished.claim.end:
        decision = decide(replace(now.situation, claims=claims, order=order), moment)
        is_new_owner = order is not None and decision.owner_id != order.owner_id
        is_ready = running is not None and ready_at <= moment
        if decision.target != running or (now.restarts and is_new_owner and is_ready):
            running = decision.target
            load = decision.target.load_seconds if decision.target else 0.0
            ready_at = moment + timedelta(seconds=(DRAIN if is_ready else 0.0) + load)
        order = Standing(
            *(decision.target, 1, moment, decision.rule, decision.booking_id, decision.owner_id),
            is_fallback=False,
            booking_start=decision.booking_start,
            booking_preset=decision.booking_preset,
        )
        if decision.rule == 1 and decision.booking_id == wished.claim.booking_id:
            break
        moment += STEP
    return ready_at if running == wished.claim.target else wished.claim.end


def compare(wished: Wished, now: Lane) -> None:
    found = foretell(wished, now)
    ready_at = planned(wished, now)
    start = wished.claim.start
    if found.warm_at <= start:
        assert ready_at <= start + NEAR
    else:
        assert abs(ready_at - found.warm_at) <= NEAR
    if found.why is Why.EARLY:
        assert abs(ready_at - found.warm_at) <= NEAR


targets = st.sampled_from([SMALL, LARGE, SLOW, None])


@st.composite
def lanes(draw: Any) -> tuple[Wished, Lane]:
    start = draw(st.integers(0, 40))
    length = draw(st.integers(15, 60))
    before = None
    if start > 1 and draw(st.booleans()):
        ends = draw(st.integers(max(start - 15, 1), start))
        begins = draw(st.integers(-60, ends - 1))
        before = claim(begins, ends, draw(targets), pk=1, owner=draw(st.integers(1, 2)))
        before = replace(before, confirmed_at=at(-90))
    wished = Wished(claim(start, start + length, draw(targets)), before)
    default = draw(targets)
    is_busy = before is not None and before.start <= at(0)
    running = before.target if before is not None and is_busy else default
    closures: Iterable[Closure] = ()
    if draw(st.booleans()):
        opens = draw(st.integers(1, 50))
        closures = (closed(opens, opens + draw(st.integers(1, 30))),)
    found = lane(running, default=default, restarts=draw(st.booleans()), closures=tuple(closures))
    if before is not None and is_busy:
        standing = Standing(
            running, 1, before.start, 1, 1, before.owner_id, False, before.start,
            running.preset if running else "",
        )  # fmt: skip
        found = replace(found, situation=replace(found.situation, order=standing))
    return wished, found


@settings(max_examples=40, deadline=None)
@given(lanes())
def test_whatever_lies_before_it_the_planner_does_what_was_foretold(
    drawn: tuple[Wished, Lane],
) -> None:
    compare(*drawn)


def test_a_slot_far_ahead_is_foretold_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(situation: Situation, now: datetime) -> Any:
        asked.append(now)
        return decide(situation, now)

    monkeypatch.setattr("bookings.foretelling.decide", counted)
    year = 365 * 24 * 60
    found = foretell(Wished(claim(year, year + 60), SAME), lane(LARGE))
    assert (found.why, seconds_of(found, at(year))) == (Why.EARLY, -55)
    assert len(asked) < 12
