"""What runs while a wanted preset waits for its next attempt. Pure; DESIGN: "Failures"."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from bookings.planner_rules import Ruling
from bookings.situation import Failure, Situation, Target
from lanes.backoff import retry_wait


@dataclass(frozen=True, slots=True)
class Course:
    """What is to run for what a rule wants."""

    target: Target | None
    is_fallback: bool = False
    failure: Failure | None = None  # of the wanted preset, while one is in force
    retry_at: datetime | None = None  # its next attempt; None: it waits for the fallback's load


def course(situation: Situation, ruling: Ruling, now: datetime) -> Course:
    """The wanted target; or the default, while a booking's preset waits for a retry.

    Without a fallback the wanted target stays, and the host tries it again in its own time.
    """
    wanted = ruling.wanted
    failure = failure_of(situation, wanted)
    if wanted is None or failure is None:
        return Course(wanted)
    fallback = fallback_for(situation, wanted) if ruling.served is not None else None
    if fallback is None:
        return Course(wanted, failure=failure, retry_at=own_attempt(failure))
    retry_at = attempt_after(situation, failure, fallback)
    if retry_at is None or now < retry_at:
        return Course(fallback, is_fallback=True, failure=failure, retry_at=retry_at)
    return Course(wanted, failure=failure, retry_at=own_attempt(failure))


def failure_of(situation: Situation, target: Target | None) -> Failure | None:
    """The failures in force of a target; they stay in force while it is tried again."""
    if target is None:
        return None
    matching = (f for f in situation.failures if f.revision_id == target.revision_id)
    return max(matching, key=lambda f: (f.failed_at, f.count), default=None)


def fallback_for(situation: Situation, wanted: Target) -> Target | None:
    """The default, if it is another preset and not itself failing."""
    default = situation.default
    if default is None or default.preset == wanted.preset:
        return None
    return default if failure_of(situation, default) is None else None


def own_attempt(failure: Failure) -> datetime:
    """When the preset may be tried again, no fallback being in the way."""
    return failure.failed_at + timedelta(seconds=retry_wait(failure.count))


def attempt_after(situation: Situation, failure: Failure, fallback: Target) -> datetime | None:
    """When the preset is tried again: while a fallback is ordered, the wait counts from that one
    being ready or failed, so that no retry ends it while it starts; None until then."""
    order = situation.order
    if order is None or not order.is_fallback:
        return own_attempt(failure)
    settled_at = _settled_at(situation, fallback)
    if settled_at is None:
        return None
    since = max(failure.failed_at, settled_at)
    return since + timedelta(seconds=retry_wait(failure.count))


def _settled_at(situation: Situation, fallback: Target) -> datetime | None:
    """Since when the fallback is ready, or has failed; None: it is on its way.

    A server that is ready counts whatever its generation: an order that came back to it before
    it was stopped keeps it. A failure counts only if it is of the present order.
    """
    order, report = situation.order, situation.report
    if order is None or report is None or report.revision_id != fallback.revision_id:
        return None
    has_failed = report.phase == "failed" and report.generation == order.generation
    return report.phase_since if report.phase == "ready" or has_failed else None
