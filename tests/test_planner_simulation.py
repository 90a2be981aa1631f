"""Simulated days: noisy loads, failing presets, people who change their minds; no target flaps.

Not in them: pins of revisions (tests/test_planning_pins.py), and what the waitlist holds, which the
planner is never told of (tests/test_facts.py).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby, pairwise
from random import Random
from typing import Any

import pytest

from bookings.closures import in_force, pieces
from bookings.situation import Choice, Claim, Closure
from lanes.backoff import retry_wait
from tests.builders import NOON
from tests.planner_facts import REVISIONS, lane, target
from tests.planner_world import Seen, World

DAY = timedelta(hours=24)
PRESETS = ["a", "big", "c", "d", None]
Action = Callable[[World], None]

# --- What people do in the day -------------------------------------------------------------


def bookings(random: Random) -> list[Claim]:
    """A day's bookings: some adjacent, some with gaps around the rules' thresholds."""
    claims: list[Claim] = []
    start = NOON + timedelta(seconds=random.uniform(0, 1200))
    while start < NOON + DAY:
        end = start + timedelta(minutes=random.choice([5, 20, 60, 90]))
        preset = random.choice(PRESETS)
        wanted = target(preset) if preset is not None else None
        number = len(claims) + 1
        claims.append(Claim(number, 100 + number, start, end, NOON - DAY, wanted))
        start = end + timedelta(seconds=random.choice([0, 90, 200, 300, 420, 900, 2400]))
    return claims


def change_a_booking(world: World, random: Random) -> None:
    """Somebody cancels, releases, shifts, or changes the preset of a booking that is not over."""
    live = [c for c in world.situation.claims if c.end > world.now]
    if not live:
        return
    old = random.choice(live[:2])
    new: Claim | None = None
    if old.start <= world.now:
        new = replace(old, end=world.now)
    elif random.random() < 0.5:
        new = replace(old, start=old.start + (old.end - old.start) / 2)
    elif random.random() < 0.5:
        new = replace(old, target=target("c"))
    others = (c for c in world.situation.claims if c is not old)
    world.situation = replace(world.situation, claims=(*others, *([new] if new else [])))


def choose(world: World, random: Random) -> None:
    """An administrator chooses a preset, or to unload, or takes a choice back."""
    wanted = random.choice([target("c"), target("big"), None])
    until = world.now + timedelta(minutes=random.choice([2, 10, 120]))
    made = Choice(wanted, world.now, until)
    world.situation = replace(world.situation, choice=random.choice([made, made, None]))


def maintenances(random: Random) -> tuple[Closure, ...]:
    """A day's maintenance: over bookings, between them, in each other, and one without an end."""
    found = []
    for _ in range(8):
        start = NOON + timedelta(seconds=random.uniform(0, 22 * 3600))
        found.append(Closure(start, start + timedelta(minutes=random.choice([1, 15, 90]))))
    return (*found, Closure(NOON + timedelta(hours=23), None))


def close(world: World, random: Random) -> None:
    """An administrator closes the lane from now on, or soon, or ends what closes it."""
    now, closures = world.now, world.situation.closures
    if random.random() < 0.5:
        kept = [c for c in closures if c.start > now or (c.end is not None and c.end <= now)]
        closures = tuple(kept)
    else:
        start = now + timedelta(seconds=random.choice([0, 30, 200, 2000]))
        closures = (*closures, Closure(start, start + timedelta(minutes=random.choice([2, 40]))))
    world.situation = replace(world.situation, closures=closures)


def actions(seed: int, kind: str) -> list[tuple[datetime, Action]]:
    """Something every twenty minutes or so."""
    random = Random(seed + 1000)
    deeds = [change_a_booking, choose, *([close] if kind == CLOSED else [])]
    planned: list[tuple[datetime, Action]] = []
    moment = NOON
    while moment < NOON + DAY:
        moment += timedelta(seconds=random.expovariate(1 / 1200))
        deed = random.choice(deeds)
        planned.append((moment, partial(deed, random=random)))
    return planned


CLOSED = "maintenance"
DAYS: dict[str, dict[str, Any]] = {
    "noisy loads": {},
    "failing presets": {"failing": {"a": 0.6, "big": 0.9, "c": 0.3}},
    "failing default": {"failing": {"a": 0.8, "d": 0.5}},
    "crashes": {"failing": {"a": 0.3, "big": 0.5, "d": 0.1}, "crashing": 0.5},
    CLOSED: {"failing": {"a": 0.3, "big": 0.3, "d": 0.1}},
}
_lived: dict[tuple[str, int, bool], World] = {}


def live_through(kind: str, seed: int, *, is_restless: bool = False) -> World:
    """A day of one lane, lived once for all tests."""
    key = (kind, seed, is_restless)
    if key not in _lived:
        closures = maintenances(Random(seed + 2000)) if kind == CLOSED else ()
        facts = lane(*bookings(Random(seed)), closures=closures)
        world = World(seed, facts, **DAYS[kind])
        world.actions = actions(seed, kind) if is_restless else []
        world.run(NOON + DAY)
        _lived[key] = world
    return _lived[key]


every_day = pytest.mark.parametrize("is_restless", [False, True])
every_kind = pytest.mark.parametrize("kind", DAYS)
every_seed = pytest.mark.parametrize("seed", range(3))

# --- What must hold ------------------------------------------------------------------------


def served(seen: Seen) -> tuple[object, ...]:
    """Whom an order is for: a booking as it then was, or nobody, under this choice."""
    decision = seen.decision
    if decision.booking_id is not None:
        return (decision.booking_id, decision.booking_start, decision.booking_preset)
    is_chosen = decision.rule in (3, 4) and seen.facts.choice is not None
    return (None, seen.facts.choice, is_chosen, decision.rule == 0)


def segments(world: World) -> Iterator[list[Seen]]:
    """The day in stretches during which the lane is for the same booking, or for nobody."""
    for _, stretch in groupby(world.seen, key=served):
        yield list(stretch)


@every_kind
@every_seed
@every_day
def test_a_commitment_is_never_left_but_for_a_reason(
    kind: str, seed: int, is_restless: bool
) -> None:
    world = live_through(kind, seed, is_restless=is_restless)
    for before, after in pairwise(world.seen):
        decision = before.decision
        if decision.booking_id is None or decision.booking_id == after.decision.booking_id:
            continue
        if after.decision.rule == 0:
            continue  # of that more below
        same = [
            c
            for c in pieces(after.facts.claims, after.facts.closures)
            if c.booking_id == decision.booking_id
            and c.start == decision.booking_start
            and (c.target.preset if c.target else "") == decision.booking_preset
        ]
        is_over = not same or same[0].end <= after.at
        assert is_over, f"{before.at}: {decision.sentence} / {after.decision.sentence}"


@every_kind
@every_seed
@every_day
def test_targets_change_only_as_often_as_failures_explain(
    kind: str, seed: int, is_restless: bool
) -> None:
    world = live_through(kind, seed, is_restless=is_restless)
    for stretch in segments(world):
        first, last = stretch[0].at, stretch[-1].at
        failures = sum(first <= at <= last for at, _ in world.failed_at)
        is_for_booking = stretch[0].decision.booking_id is not None
        allowed = 1 + 2 * failures if is_for_booking else 1
        changes = [seen for seen in stretch if seen.is_change]
        assert len(changes) <= allowed, [(str(c.at), c.decision.sentence) for c in changes]


@every_kind
@every_seed
@every_day
def test_no_retry_ends_a_fallback_that_starts(kind: str, seed: int, is_restless: bool) -> None:
    for seen in retries(live_through(kind, seed, is_restless=is_restless)):
        order, report = seen.facts.order, seen.facts.report
        assert order is not None
        assert order.target is not None
        assert report is not None
        assert (report.revision_id, report.phase) == (order.target.revision_id, "ready")
        assert seen.decision.target is not None
        wanted = seen.decision.target.revision_id
        count = next(f.count for f in seen.facts.failures if f.revision_id == wanted)
        assert (seen.at - report.phase_since).total_seconds() >= retry_wait(count)


def retries(world: World) -> Iterator[Seen]:
    """The orders that end a working fallback to try a booking's failed preset again."""
    for seen in world.seen:
        order, decision = seen.facts.order, seen.decision
        failing = {f.revision_id for f in seen.facts.failures}
        if (
            order is not None
            and order.is_fallback
            and not decision.is_fallback
            and decision.booking_id is not None
            and decision.target is not None
            and decision.target.revision_id in failing
            and REVISIONS["d"] not in failing
        ):
            yield seen


@every_kind
@every_seed
def test_every_slot_begins_and_ends_on_time(kind: str, seed: int) -> None:
    world = live_through(kind, seed)
    for claim in pieces(world.situation.claims, world.situation.closures):
        of_owner = (s for s in world.seen if s.decision.owner_id == claim.owner_id)
        moments = [s.at for s in of_owner if claim.start <= s.at < claim.end]
        if claim.end < NOON + DAY:
            assert moments[0] == claim.start
            after = next(s.at for s in world.seen if s.at > moments[-1])
            assert after == claim.end


@every_seed
@every_day
def test_nothing_runs_in_maintenance_and_it_is_left_at_once(seed: int, is_restless: bool) -> None:
    world = live_through(CLOSED, seed, is_restless=is_restless)
    closed = 0
    for seen in world.seen:
        facts, decision = seen.facts, seen.decision
        is_closed = in_force(facts.closures, seen.at) is not None
        if is_closed:
            closed += 1
            assert (decision.rule, decision.target, decision.booking_id) == (0, None, None)
        elif decision.rule == 0:  # before one it is emptied, but for no slot that is in progress
            live = pieces(facts.claims, facts.closures)
            assert not any(c.active_from <= seen.at < c.end for c in live)
            margins = facts.margins
            soon = seen.at + timedelta(seconds=margins.stop + margins.buffer)
            assert any(seen.at < c.start <= soon for c in facts.closures)
    assert closed > 10


@every_seed
@every_day
def test_a_slot_that_maintenance_cuts_in_two_has_what_is_left_of_it(
    seed: int, is_restless: bool
) -> None:
    world = live_through(CLOSED, seed, is_restless=is_restless)
    for seen in world.seen:
        live = pieces(seen.facts.claims, seen.facts.closures)
        now = [c for c in live if c.active_from <= seen.at < c.end]
        owner = now[0].owner_id if now else None
        assert seen.decision.owner_id == owner


@every_seed
@every_day
def test_no_preload_begins_for_a_slot_behind_maintenance(seed: int, is_restless: bool) -> None:
    world = live_through(CLOSED, seed, is_restless=is_restless)
    for seen in world.seen:
        decision = seen.decision
        if decision.rule in (2, 3) and decision.booking_start is not None:
            between = (seen.at, decision.booking_start)
            assert not any(between[0] <= c.start < between[1] for c in seen.facts.closures)


@every_seed
def test_a_slot_after_a_long_gap_finds_its_model_ready(seed: int) -> None:
    world = World(seed, lane(*bookings(Random(seed))), noise=(1.0, 1.0))
    world.run(NOON + DAY)
    claims = sorted(world.situation.claims, key=lambda c: c.start)
    for before, claim in pairwise(claims):
        if claim.target is None or claim.start - before.end < timedelta(minutes=10):
            continue
        start = next((s for s in world.seen if s.at >= claim.start), None)
        if start is not None:
            assert start.facts.report is not None
            assert start.facts.report.phase == "ready"
            assert start.facts.report.revision_id == claim.target.revision_id


def test_the_days_have_all_that_could_go_wrong() -> None:
    worlds = [live_through(kind, seed, is_restless=True) for kind in DAYS for seed in range(3)]
    rules = {s.decision.rule for world in worlds for s in world.seen}
    assert rules == {0, 1, 2, 3, 4, 5}
    assert sum(len(list(retries(world))) for world in worlds) > 20
    assert sum(s.decision.is_fallback for world in worlds for s in world.seen) > 100


def test_the_same_seed_is_the_same_day() -> None:
    first, second = (World(5, lane(*bookings(Random(5))), failing={"a": 0.5}) for _ in range(2))
    for world in (first, second):
        world.run(NOON + DAY / 4)
    assert [s.decision for s in first.seen] == [s.decision for s in second.seen]
