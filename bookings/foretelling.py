"""What a slot that nobody has booked yet would begin with: a warm model, a load, an empty GPU.

Pure.

The planner itself is asked, step by step, what it would do until the slot begins. Estimates assume
that drains take as long as they may and that no load fails.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from bookings.closures import in_force
from bookings.planner import decide
from bookings.situation import Claim, Decision, Situation, Standing, Target

LOOKED_BACK = timedelta(days=1)  # nothing earlier bears on a slot, but for the one before it


class Why(StrEnum):
    """How it comes that a slot begins as it does."""

    SAME_BEFORE = "same_before"  # the slot before runs the same model
    LOADED = "loaded"  # it runs already, for nobody in particular
    EARLY = "early"  # loaded, or stopped, before the slot starts
    AT_ONCE = "at_once"  # there is no time before the slot
    OTHER_BEFORE = "other_before"  # the slot before runs another model
    GPU_BEFORE = "gpu_before"  # the slot before has the whole GPU
    CLOSED_BEFORE = "closed_before"  # maintenance lasts until, or into, the slot
    OWNER_CHANGES = "owner_changes"  # the lane restarts its server for each owner


@dataclass(frozen=True, slots=True)
class Running:
    """What a lane runs: nothing, or a target, ready from a moment on; being ready, it may have been
    asked something. `loads_from`: when its load began, where that is known."""

    target: Target | None
    ready_at: datetime
    loads_from: datetime | None = None
    drained: float = 0.0  # seconds that requests of what ran before were given

    @property
    def revision(self) -> int | None:
        """What of; None: nothing."""
        return self.target.revision_id if self.target else None


@dataclass(frozen=True, slots=True)
class Wished:
    """A slot that is wished, among what is booked: the last one before it, and the next."""

    claim: Claim
    before: Claim | None = None
    after: Claim | None = None


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane as it is at `now`."""

    situation: Situation  # its claims do not matter
    running: Running
    now: datetime
    drain: float  # seconds, at most
    restarts: bool = False  # its server for each owner


@dataclass(frozen=True, slots=True)
class Foretold:
    """When the model answers, or the GPU is empty. `waits`: seconds of the slot until then, without
    the `drained` seconds that running requests may take first."""

    why: Why
    warm_at: datetime
    waits: float = 0.0
    drained: float = 0.0


def foretell(wished: Wished, lane: Lane) -> Foretold:
    """How the slot would begin."""
    if wished.before and wished.before.end <= wished.claim.active_from - LOOKED_BACK:
        wished = replace(wished, before=None)
    begins, standing, running = _beginning(wished, lane)
    known = (wished.before, wished.claim, wished.after)
    situation = replace(
        lane.situation, claims=tuple(each for each in known if each), order=standing, failures=()
    )
    at, is_restart = begins, False
    for moment, decision, was in _decisions(situation, begins, wished.claim.end):
        is_for_it = decision.rule == 1 and decision.booking_id == wished.claim.booking_id
        restarted = lane.restarts and was is not None and decision.owner_id != was.owner_id
        changed = _next(running, decision, moment, lane.drain, is_restarted=restarted)
        if changed is not running:
            at, is_restart = moment, changed.revision == running.revision
            running = changed
        if is_for_it:
            break
    return _answer(wished, lane, running, at, is_restart=is_restart)


def _beginning(wished: Wished, lane: Lane) -> tuple[datetime, Standing | None, Running]:
    """From when to ask, and what is so then."""
    before, now = wished.before, lane.now
    if before is not None and before.active_from > now:
        return before.end, _ordered(before, lane), Running(before.target, before.active_from)
    far = wished.claim.active_from - LOOKED_BACK
    if far <= now or before is not None:
        return now, lane.situation.order, lane.running
    usual = decide(replace(lane.situation, claims=(), order=None, failures=()), far)
    order = _standing(usual, lane.situation.order, far)
    return far, order, Running(usual.target, far)


def _decisions(
    situation: Situation, begins: datetime, until: datetime
) -> Iterator[tuple[datetime, Decision, Standing | None]]:
    """What the planner decides, each time that it asks again, and what it had ordered before."""
    at: datetime | None = begins
    while at is not None and at < until:
        decision = decide(situation, at)
        yield at, decision, situation.order
        order = _standing(decision, situation.order, at)
        situation = replace(situation, order=order)
        at = decision.reconsider_at


def _standing(decision: Decision, was: Standing | None, now: datetime) -> Standing:
    return Standing(
        target=decision.target,
        generation=(was.generation if was else 0) + 1,
        ordered_at=now,
        rule=decision.rule,
        booking_id=decision.booking_id,
        owner_id=decision.owner_id,
        is_fallback=False,
        booking_start=decision.booking_start,
        booking_preset=decision.booking_preset,
    )


def _ordered(before: Claim, lane: Lane) -> Standing:
    """The order as the slot before leaves it."""
    preset = before.target.preset if before.target else ""
    return Standing(
        target=before.target,
        generation=1,
        ordered_at=before.active_from,
        rule=1,
        booking_id=before.booking_id,
        owner_id=before.owner_id,
        is_fallback=False,
        booking_start=before.start,
        booking_preset=preset,
    )


def _next(
    running: Running, decision: Decision, at: datetime, drain: float, *, is_restarted: bool
) -> Running:
    """What runs after a decision; one that still loads serves nobody, so nothing drains."""
    wanted = decision.target
    is_ready = running.target is not None and running.ready_at <= at
    is_same = (wanted.revision_id if wanted else None) == running.revision
    if is_same and not (is_restarted and is_ready):
        return running
    drained = drain if is_ready else 0.0
    free = at + timedelta(seconds=drained)
    load = wanted.load_seconds if wanted else 0.0
    return Running(wanted, free + timedelta(seconds=load), free, drained)


def _answer(
    wished: Wished, lane: Lane, running: Running, at: datetime, *, is_restart: bool
) -> Foretold:
    claim, warm = wished.claim, running.ready_at
    start = claim.active_from
    if running.revision != (claim.target.revision_id if claim.target else None):
        return Foretold(Why.CLOSED_BEFORE, claim.end, (claim.end - start).total_seconds())
    if warm <= start:
        return Foretold(_why_early(wished, running, at), warm)
    waits = max((warm - start).total_seconds() - running.drained, 0.0)
    why = _why_late(wished, lane, at)
    return Foretold(Why.OWNER_CHANGES if is_restart else why, warm, waits, running.drained)


def _why_early(wished: Wished, running: Running, at: datetime) -> Why:
    """Whether it runs for the slot before, was turned to since, or runs anyway."""
    before = wished.before
    if before is not None and before.target is not None and at < before.end:
        return Why.SAME_BEFORE
    if running.loads_from is not None:
        return Why.EARLY
    return Why.SAME_BEFORE if before is not None and before.target is not None else Why.LOADED


def _why_late(wished: Wished, lane: Lane, at: datetime) -> Why:
    """What keeps it from being loaded sooner: what ended as the lane turned to it."""
    just_before = at - timedelta(microseconds=1)
    if in_force(lane.situation.closures, just_before) is not None and at > lane.now:
        return Why.CLOSED_BEFORE
    before = wished.before
    if before is None or before.end != at or at <= lane.now:
        return Why.AT_ONCE
    return Why.OTHER_BEFORE if before.target else Why.GPU_BEFORE
