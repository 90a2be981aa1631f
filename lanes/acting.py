"""Carrying out one step of `next_step`. Returns when the lane is to be looked at again."""

import signal
from collections.abc import Callable
from enum import Enum
from typing import Any

from lanes import ending, records, reporting, seeing, starting, stillborn, stop_command
from lanes.containers import asking as containers
from lanes.engines import registry
from lanes.failures.causes import Cause, Evidence, FailureWords, Kind, joined
from lanes.failures.common import ADVICE
from lanes.failures.reading import named_cause, read_cause, stated_cause, without_folders
from lanes.logs import read_tail
from lanes.models import Runtime
from lanes.refusals import Refusal
from lanes.seeing import Sight
from lanes.steps import (
    KILL,
    SECOND_TERM,
    BeginDrain,
    CarryOn,
    ClearFailures,
    MarkBlocked,
    MarkFailed,
    MarkReady,
    MarkStopped,
    SendKill,
    SendSecondTerm,
    SendTerm,
    Start,
    Step,
    Sweep,
)
from wire.words import said

LOG_BYTES = 65536  # of its end: tracebacks of several processes may follow the cause
SOON_SWEEPS = 20  # of one server's leftovers: two seconds of looks
_sweeps: dict[int, tuple[int | None, int]] = {}  # by lane: whose leftovers, how often swept


class Again(Enum):
    """When to look again after a step."""

    AT_ONCE = "facts have changed"
    SOON = "the host needs a moment"
    WITH_OTHERS = "nothing changes by asking again: at the host's next look"


def act(step: Step, sight: Sight) -> Again:
    """Do it, and say when to decide again."""
    if isinstance(step, Start):
        return _start(step, sight)
    if isinstance(step, Sweep):
        return _sweep(sight)
    return Again.AT_ONCE if _act(step, sight) else Again.SOON


def _act(step: Step, sight: Sight) -> bool:
    """Whether facts have changed."""
    if isinstance(step, MarkBlocked):
        return reporting.report_blocked(sight, _no_room(step))
    if sight.runtime is None:
        return False
    return _ACTIONS[type(step)](step, sight, sight.runtime)


def report_identity(sight: Sight) -> None:
    """Say which process the runtime is, once, as soon as its shim has written it down."""
    record, runtime = sight.record, sight.runtime
    if record is None or runtime is None or record.pid in (None, runtime.pid):
        return
    columns = {"shim_pid": record.shim_pid, "pid": record.pid, "start_ticks": record.ticks}
    reporting.report(sight, runtime, **columns)


def _start(step: Start, sight: Sight) -> Again:
    started = starting.start(sight.lane, step)
    if isinstance(started, Cause):
        return Again.AT_ONCE if reporting.report_blocked(sight, started) else Again.SOON
    if isinstance(started, Refusal):
        reporting.tell_once(sight.lane, sight.now, reporting.REFUSED, started.words)
        return Again.WITH_OTHERS
    if isinstance(started, starting.NotSpawned):
        runtime = started.runtime
        cause = stillborn.cause_of(sight.lane, started.error, _words(runtime))
        reporting.report_failed(sight, runtime, cause, counts=True, was_steady=False)
    return Again.SOON if isinstance(started, Runtime) else Again.AT_ONCE


def _sweep(sight: Sight) -> Again:
    """What SIGKILL or the Docker Engine does not end soon is asked after at the host's looks."""
    swept = ending.sweep(sight.lane.pk)
    if swept:
        words = said(
            "ended {count} process(es) that an earlier server left behind", count=len(swept)
        )
        reporting.tell_once(sight.lane, sight.now, "swept", words)
    elif trouble := containers.trouble(records.read_record(sight.lane.pk)):
        words = said(
            "nothing starts until it is known that no container is left: {trouble}", trouble=trouble
        )
        reporting.tell_once(sight.lane, sight.now, reporting.REFUSED, words)
    runtime = sight.record.runtime if sight.record else None
    known, count = _sweeps.get(sight.lane.pk, (runtime, 0))
    count = count + 1 if known == runtime else 1
    _sweeps[sight.lane.pk] = runtime, count
    return Again.SOON if count <= SOON_SWEEPS else Again.WITH_OTHERS


def _mark_ready(step: MarkReady, sight: Sight, runtime: Runtime) -> bool:
    return reporting.report_ready(sight, runtime, seeing.server_facts(sight, runtime))


def _carry_on(step: CarryOn, sight: Sight, runtime: Runtime) -> bool:
    changes: dict[str, object] = {"generation": step.generation}
    if runtime.phase == "draining":
        changes |= {"phase": "ready", "drain_until": None}
    return reporting.report(sight, runtime, **changes)


def _begin_drain(step: BeginDrain, sight: Sight, runtime: Runtime) -> bool:
    return reporting.report_drain(sight, runtime, step.until)


def _term(step: SendTerm, sight: Sight, runtime: Runtime) -> bool:
    cause = _cause_of_stop(step, sight, runtime) if step.reason else None
    if not reporting.report_stopping(sight, runtime, cause):
        return False
    if not stop_command.run(sight.lane, runtime, sight.record):
        ending.signal_server(sight.record, signal.SIGTERM)
    return False


def _second_term(step: SendSecondTerm, sight: Sight, runtime: Runtime) -> bool:
    if reporting.report(sight, runtime, signals_sent=SECOND_TERM):
        ending.signal_server(sight.record, signal.SIGTERM)
    return False


def _kill(step: SendKill, sight: Sight, runtime: Runtime) -> bool:
    if reporting.report(sight, runtime, signals_sent=KILL):
        ending.signal_server(sight.record, signal.SIGKILL)
    return False


def _mark_stopped(step: MarkStopped, sight: Sight, runtime: Runtime) -> bool:
    return reporting.report_stopped(sight, runtime, step.reason)


def _mark_failed(step: MarkFailed, sight: Sight, runtime: Runtime) -> bool:
    return reporting.report_failed(
        sight,
        runtime,
        _cause_of_end(step, sight, runtime),
        counts=step.counts,
        was_steady=step.was_steady,
    )


def _clear_failures(step: ClearFailures, sight: Sight, runtime: Runtime) -> bool:
    reporting.clear_failures(sight, runtime)
    return True


def _cause_of_stop(step: SendTerm, sight: Sight, runtime: Runtime) -> Cause:
    """Why a server that lives is given up."""
    if runtime.reason:  # it is being stopped already
        return reporting.cause_told(runtime)
    seen = sight.seen
    if seen.trouble:
        named = named_cause(read_tail(runtime.log_path, LOG_BYTES), _words(runtime))
        return named or stated_cause(
            _kind_of_trouble(sight), step.reason, _words(runtime), advice=seen.advice
        )
    return read_cause(_evidence(sight, runtime, waited=seeing.limits().load), _words(runtime))


def _kind_of_trouble(sight: Sight) -> Kind:
    """What keeps a server that answers from being ready."""
    if sight.seen.is_port_foreign:
        return Kind.PORT_TAKEN
    return Kind.ARGUMENT if sight.seen.is_open else Kind.TIMEOUT


def _cause_of_end(step: MarkFailed, sight: Sight, runtime: Runtime) -> Cause:
    """Why a server is gone: what was said when it was given up, else what it left behind."""
    if runtime.reason:
        return reporting.cause_told(runtime)
    if sight.seen.is_stillborn:
        return stillborn.cause_of_death(sight.lane, _words(runtime))
    if step.reason:
        return stated_cause(Kind.UNKNOWN, step.reason, _words(runtime))
    record = sight.record
    if record and record.error:
        why = said("It could not be started: {why}.", why=without_folders(record.error).rstrip("."))
        return stated_cause(Kind.PROGRAM, why, _words(runtime), line=record.error)
    return read_cause(_evidence(sight, runtime), _words(runtime))


def _no_room(step: MarkBlocked) -> Cause:
    """Others hold the memory that it needs."""
    return Cause(Kind.GPU_TAKEN, joined(step.reason), advice=said(ADVICE[Kind.GPU_TAKEN]))


def _words(runtime: Runtime) -> FailureWords:
    return registry.engine_of(runtime.revision).failure_words


def _evidence(sight: Sight, runtime: Runtime, *, waited: float | None = None) -> Evidence:
    record = sight.record
    return Evidence(
        read_tail(runtime.log_path, LOG_BYTES),
        record.exit_status if record else None,
        killed_line=record.killed_line if record else "",
        memory_kills=record.memory_kills if record else 0,
        waited=waited,
    )


_ACTIONS: dict[type, Callable[[Any, Sight, Runtime], bool]] = {
    MarkReady: _mark_ready,
    CarryOn: _carry_on,
    BeginDrain: _begin_drain,
    SendTerm: _term,
    SendSecondTerm: _second_term,
    SendKill: _kill,
    MarkStopped: _mark_stopped,
    MarkFailed: _mark_failed,
    ClearFailures: _clear_failures,
}
