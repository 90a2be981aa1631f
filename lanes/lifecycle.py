"""What a host does next about one lane: the pure half of the supervisor.

`next_step` is asked again at every look and remembers nothing. Sources: DESIGN "Changing the model
without cutting requests off" and "Failures".
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from lanes.backoff import retry_wait
from lanes.steps import (
    KILL,
    SECOND_TERM,
    Barrier,
    BeginDrain,
    CarryOn,
    ClearFailures,
    Failed,
    KeepWaiting,
    Limits,
    MarkBlocked,
    MarkFailed,
    MarkReady,
    MarkStopped,
    Nothing,
    Phase,
    Process,
    Running,
    Seen,
    SendKill,
    SendSecondTerm,
    SendTerm,
    Start,
    Step,
    Sweep,
    Wanted,
)
from wire.words import said

LOADING_LOOK = 0.25  # seconds between looks while a server loads, at most
SOONEST_LOOK = 0.05  # and at least
LATE_SHARE = 0.05  # of the load so far: by so much a ready server may be found too late
MOVING_LOOK = 0.1  # while it drains or stops, or something is swept
FIRST_DRAIN_LOOK = 0.03  # in its first second: mostly nothing runs, and edges say so at once
FIRST_DRAIN_SECONDS = 1.0
STEADY_SECONDS = 60.0  # ready for so long is success; an earlier exit is a failure
SECOND_EXIT_SECONDS = 600.0  # a second exit of a steady server within this backs off
KILL_AFTER = 3 / 4  # of the stop time-out
AFTER_DRAIN_SECONDS = 1.0  # the edges' time to end what still runs at drain_until


def next_step(wanted: Wanted, seen: Seen, limits: Limits, now: datetime) -> Step:
    """The one thing to do now. Waiting steps say when to look again; after others, ask again."""
    running = seen.runtime
    if running is None:
        return _without_server(wanted, seen, now)
    if seen.process is not Process.LIVING:
        return _without_process(running, seen, limits, now)
    return _BY_PHASE[running.phase](wanted, running, seen, limits, now)


def satisfies(running: Running, wanted: Wanted) -> bool:
    """Whether this server is what is wanted; one that never served is as good as a fresh one."""
    if running.revision_id != wanted.revision_id:
        return False
    if running.phase is Phase.STARTING:
        return not _is_reload(running, wanted)
    return running.generation >= wanted.fresh_from and not _is_reload(running, wanted)


def retry_due(failed: Failed, now: datetime) -> bool:
    """Whether no failure, or one that has waited long enough, keeps a revision from starting.

    A failure in the future (a clock that was set back) does not count as waiting.
    """
    if failed.count < 1 or failed.failed_at is None or now < failed.failed_at:
        return True
    return now >= failed.failed_at + timedelta(seconds=retry_wait(failed.count))


def _is_reload(running: Running, wanted: Wanted) -> bool:
    return wanted.is_reload and wanted.generation > running.generation


def _without_server(wanted: Wanted, seen: Seen, now: datetime) -> Step:
    if seen.is_locked:
        return Sweep()
    if wanted.revision_id is None:
        return Nothing()
    failed = _failed(seen, wanted.revision_id)
    if not retry_due(failed, now) and failed.failed_at is not None:
        due = failed.failed_at + timedelta(seconds=retry_wait(failed.count))
        return KeepWaiting((due - now).total_seconds())
    if not seen.is_memory_free:
        return KeepWaiting(LOADING_LOOK)
    if seen.shortage:
        return MarkBlocked(seen.shortage)
    return Start(wanted.generation, wanted.revision_id)


def _without_process(running: Running, seen: Seen, limits: Limits, now: datetime) -> Step:
    if seen.process is Process.UNBORN and not seen.is_stillborn:
        waited = seen.age or (now - running.started_at).total_seconds()
        if 0 <= waited < limits.spawn:
            return KeepWaiting(MOVING_LOOK)
    if seen.is_locked:
        return Sweep()
    if seen.process is Process.UNBORN and seen.is_stillborn:
        return MarkFailed()
    if seen.process is Process.UNBORN:
        return MarkFailed("the server was never started: its worker ended first", counts=False)
    if seen.process is Process.REBOOTED:
        return MarkStopped("the host was restarted")
    return _after_exit(running, seen, now)


def _after_exit(running: Running, seen: Seen, now: datetime) -> Step:
    if running.phase is Phase.STOPPING:
        return MarkFailed(running.reason) if running.reason else MarkStopped()
    if running.phase is Phase.STARTING or running.ready_at is None:
        return MarkFailed()
    if running.phase is Phase.DRAINING:
        return MarkStopped()
    if (now - running.ready_at).total_seconds() < STEADY_SECONDS:
        return MarkFailed()
    last = _failed(seen, running.revision_id).last_exit_at
    is_second = last is not None and (now - last).total_seconds() < SECOND_EXIT_SECONDS
    return MarkFailed(counts=is_second, was_steady=True)


def _starting(wanted: Wanted, running: Running, seen: Seen, limits: Limits, now: datetime) -> Step:
    if not satisfies(running, wanted):
        return SendTerm()
    if wanted.generation > running.generation:
        return CarryOn(wanted.generation)
    if seen.is_healthy:
        return MarkReady()
    if seen.is_port_foreign or seen.is_open:  # neither mends itself
        return SendTerm(seen.trouble)
    if seen.age >= limits.load:
        return SendTerm(_late(limits.load, seen.trouble))
    return KeepWaiting(min(LOADING_LOOK, max(SOONEST_LOOK, seen.age * LATE_SHARE)))


def _late(seconds: float, trouble: str) -> str:
    if not trouble:
        return said("It did not become ready within {seconds:g} s.", seconds=seconds)
    return said("It did not become ready within {seconds:g} s: {why}", seconds=seconds, why=trouble)


def _ready(wanted: Wanted, running: Running, seen: Seen, limits: Limits, now: datetime) -> Step:
    if _is_reload(running, wanted):
        return SendTerm()
    if not satisfies(running, wanted):
        return BeginDrain(now + timedelta(seconds=limits.drain))
    if wanted.generation > running.generation:
        return CarryOn(wanted.generation)
    return _steady(running, seen, now)


def _steady(running: Running, seen: Seen, now: datetime) -> Step:
    if running.ready_at is None or not _failed(seen, running.revision_id).count:
        return Nothing()
    is_steady = (now - running.ready_at).total_seconds() >= STEADY_SECONDS
    return ClearFailures() if is_steady else Nothing()


def _draining(wanted: Wanted, running: Running, seen: Seen, limits: Limits, now: datetime) -> Step:
    if _is_reload(running, wanted):
        return SendTerm()
    if satisfies(running, wanted):
        return CarryOn(wanted.generation)
    longest = now + timedelta(seconds=limits.drain)
    if running.drain_until is None or running.drain_until > longest:
        return BeginDrain(longest)  # the clock was set back: no drain is longer than its limit
    deadline = running.drain_until + timedelta(seconds=AFTER_DRAIN_SECONDS)
    if seen.barrier is Barrier.ZERO or now >= deadline:
        return SendTerm()
    has_just_begun = running.drain_until > longest - timedelta(seconds=FIRST_DRAIN_SECONDS)
    return KeepWaiting(FIRST_DRAIN_LOOK if has_just_begun else MOVING_LOOK)


def _stopping(wanted: Wanted, running: Running, seen: Seen, limits: Limits, now: datetime) -> Step:
    if running.term_at is None or now < running.term_at:
        return SendTerm(running.reason)  # the clock was set back: count anew
    waited = (now - running.term_at).total_seconds()
    if waited >= limits.stop and running.signals_sent >= KILL:
        return Sweep()
    if waited >= limits.stop * KILL_AFTER and running.signals_sent < KILL:
        return SendKill()
    if waited >= limits.stop / 2 and running.signals_sent < SECOND_TERM:
        return SendSecondTerm()
    return KeepWaiting(MOVING_LOOK)


def _failed(seen: Seen, revision_id: int) -> Failed:
    matches = (failed for failed in seen.failures if failed.revision_id == revision_id)
    return next(matches, Failed(revision_id))


_PhaseRule = Callable[[Wanted, Running, Seen, Limits, datetime], Step]
_BY_PHASE: dict[Phase, _PhaseRule] = {
    Phase.STARTING: _starting,
    Phase.READY: _ready,
    Phase.DRAINING: _draining,
    Phase.STOPPING: _stopping,
}
