"""What a test load does next. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

PATIENCE = timedelta(seconds=100)  # with a trial that was asked for


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the revision failed, as its row keeps it."""

    reason: str
    advice: str = ""
    words: Mapping[str, object] | None = None  # of both, by their names: wire.words


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a test that runs."""

    is_wanted: bool  # whether the planner has the lane run it
    why_not: str  # the planner's sentence
    is_ready: bool
    load_seconds: float | None
    failure: Failure | None  # since it was asked for
    trial_asked_at: datetime | None
    is_trial_over: bool


@dataclass(frozen=True, slots=True)
class Ask:
    """Have the host send the trial request, unless it is at it."""

    load_seconds: float | None


@dataclass(frozen=True, slots=True)
class End:
    """Write down how it ended, and give the lane back."""

    outcome: Literal["passed", "failed", "interrupted", "stopped"]
    load_seconds: float | None = None
    failure: Failure | None = None
    why: str = ""


Step = Ask | End


def next_of(seen: Seen, now: datetime) -> Step | None:
    """The next step; None: wait. A failure counts before an interruption: it came first."""
    if seen.is_trial_over:
        return End("passed", seen.load_seconds)
    if seen.failure is not None:
        return End("failed", failure=seen.failure)
    if not seen.is_wanted:
        return End("interrupted", seen.load_seconds, why=seen.why_not)
    if not seen.is_ready:
        return None
    if seen.trial_asked_at is not None and now - seen.trial_asked_at > PATIENCE:
        return End("passed", seen.load_seconds)
    return Ask(seen.load_seconds)  # again at each look: a message may be lost
