"""What may be wanted of a server, and what may be seen of it, at noon."""

from dataclasses import replace
from datetime import datetime, timedelta

from lanes.steps import Failed, Limits, Phase, Process, Running, Seen, Wanted
from tests.builders import NOON

LIMITS = Limits(drain=30, stop=20, load=600, spawn=6)
A, B = 1, 2  # two preset revisions


def ago(seconds: float) -> datetime:
    """So long before noon."""
    return NOON - timedelta(seconds=seconds)


def later(seconds: float) -> datetime:
    """So long after noon."""
    return NOON + timedelta(seconds=seconds)


NOTHING_RUNS = Seen()
UNBORN = Seen(Running(5, A, Phase.STARTING, ago(10)), Process.UNBORN)
STARTING = Seen(Running(5, A, Phase.STARTING, ago(10)), Process.LIVING, age=10)
READY = Seen(Running(5, A, Phase.READY, ago(200), ready_at=ago(100)), Process.LIVING, age=200)
DRAINING = Seen(
    Running(5, A, Phase.DRAINING, ago(200), ready_at=ago(100), drain_until=later(20)),
    Process.LIVING,
    age=200,
)
STOPPING = Seen(
    Running(5, A, Phase.STOPPING, ago(200), ago(100), ago(2), term_at=ago(1), signals_sent=1),
    Process.LIVING,
    age=200,
)
KEEP = Wanted(5, A)
OTHER = Wanted(6, B)
UNLOAD = Wanted(6, None)


def with_runtime(seen: Seen, **changes: object) -> Seen:
    """The same sight with another report."""
    assert seen.runtime is not None
    return replace(seen, runtime=replace(seen.runtime, **changes))  # type: ignore[arg-type]


def gone(seen: Seen, **changes: object) -> Seen:
    """The same sight without its process."""
    return replace(seen, process=Process.GONE, **changes)  # type: ignore[arg-type]


def failed(count: int, seconds_ago: float, revision: int = A) -> tuple[Failed, ...]:
    """Failures in a row, the last so long ago."""
    return (Failed(revision, count, ago(seconds_ago)),)


def exited(seconds_ago: float) -> tuple[Failed, ...]:
    """An earlier exit of a steady server."""
    return (Failed(A, last_exit_at=ago(seconds_ago)),)
