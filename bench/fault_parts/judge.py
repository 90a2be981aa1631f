"""What must be true after a campaign, from what members and model servers noted."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.fault_parts.breaking import Fault
from bench.fault_parts.times import Clock
from bench.soak_parts.judge import Served, Slot
from bench.soak_parts.members import Asked
from bench.soak_parts.model_server import doubles_of

TOLERANCE = 0.5  # seconds from the gateway's decision to the server's note: parts start meanwhile
NEAR_STEP = 2.0  # seconds until what was let in just before a step is noted, too


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of the run."""

    asked: list[Asked]
    served: list[Served]
    slots: list[Slot]  # by the product's clock
    lanes: dict[str, str]  # slugs by primary key
    made: list[Fault]
    counted_failures: int  # of model servers, that made the product wait
    clock: Clock


def broken_promises(evidence: Evidence, log: Path) -> list[str]:
    """Every one, a sentence each."""
    return [
        *_doubles(log),
        *strangers(evidence),
        *wrong_models(evidence),
        *errors(evidence),
        *_unjust_waits(evidence),
    ]


def strangers(evidence: Evidence) -> Iterable[str]:
    """Requests that a model server got while its lane was another's, by the product's clock.

    One that lay in a link that was cut, until its asker had been told otherwise, served nobody.
    """
    told = {one.id: one.end for one in evidence.asked if one.end}
    for one in evidence.served:
        if evidence.clock.is_near_step(one.at, NEAR_STEP) or told.get(one.id, one.at) < one.at:
            continue
        at, lane = evidence.clock.at(one.at), evidence.lanes.get(one.lane, "")
        if not lane:
            yield f"request {one.id} ran on lane {one.lane!r}, which is none of ours"
        for slot in evidence.slots:
            is_then = slot.start + TOLERANCE <= at <= slot.end - TOLERANCE
            if slot.lane == lane and slot.user != one.user and is_then:
                late = at - slot.start
                yield f"{one.user} was served on {lane} {late:.2f} s into {slot.user}'s slot"


def wrong_models(evidence: Evidence) -> Iterable[str]:
    """Requests that ran on another model than they named, without a word about it."""
    alias_of = {one.id: one.alias for one in evidence.served}
    for one in evidence.asked:
        alias = alias_of.get(one.id)
        if alias is None or one.model in ("auto", alias) or one.fallback or not one.is_whole:
            continue
        yield f"{one.user}'s request {one.id} named {one.model} and ran on {alias}"


def errors(evidence: Evidence) -> Iterable[str]:
    """A fault may lead to a refusal, never to an answer that nobody meant."""
    for one in evidence.asked:
        if one.status == 500:
            yield f"{one.user}'s request {one.id} ({one.way}) was answered 500 {one.code}"


def _doubles(log: Path) -> list[str]:
    doubles = doubles_of(log)
    return doubles.read_text().splitlines() if doubles.exists() else []


def _unjust_waits(evidence: Evidence) -> Iterable[str]:
    """Failures that made a preset wait, beyond those of servers that were victims."""
    victims = sum(bool(fault.lane) for fault in evidence.made)
    if evidence.counted_failures > victims:
        yield (
            f"{evidence.counted_failures} failures of model servers made presets wait, and only "
            f"{victims} model servers were victims"
        )
