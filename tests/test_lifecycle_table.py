"""`next_step`, case by case. Each row: what is wanted, what is seen, what is done."""

from dataclasses import replace

import pytest

from lanes.lifecycle import next_step, retry_due, satisfies
from lanes.steps import (
    Barrier,
    BeginDrain,
    CarryOn,
    ClearFailures,
    Failed,
    KeepWaiting,
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
from tests.builders import NOON
from tests.lifecycle_cast import (
    DRAINING,
    KEEP,
    LIMITS,
    NOTHING_RUNS,
    OTHER,
    READY,
    STARTING,
    STOPPING,
    UNBORN,
    UNLOAD,
    A,
    B,
    ago,
    exited,
    failed,
    gone,
    later,
    with_runtime,
)

CASES: dict[str, tuple[Wanted, Seen, Step]] = {
    # --- no server ---
    "nothing wanted, nothing there": (UNLOAD, NOTHING_RUNS, Nothing()),
    "wanted and free": (OTHER, NOTHING_RUNS, Start(6, B)),
    "wanted but locked": (OTHER, replace(NOTHING_RUNS, is_locked=True), Sweep()),
    "nothing wanted but locked": (UNLOAD, replace(NOTHING_RUNS, is_locked=True), Sweep()),
    "memory not free yet": (
        OTHER,
        replace(NOTHING_RUNS, is_memory_free=False),
        KeepWaiting(0.25),
    ),
    "others hold the memory": (
        OTHER,
        replace(NOTHING_RUNS, shortage="needs 14 GiB, 9 GiB free"),
        MarkBlocked("needs 14 GiB, 9 GiB free"),
    ),
    "others hold the memory and the retry is not due": (
        KEEP,
        replace(NOTHING_RUNS, shortage="needs 14 GiB", failures=failed(1, 29)),
        KeepWaiting(1.0),
    ),
    "first failure 29 s ago": (
        KEEP,
        replace(NOTHING_RUNS, failures=failed(1, 29)),
        KeepWaiting(1.0),
    ),
    "first failure 30 s ago": (KEEP, replace(NOTHING_RUNS, failures=failed(1, 30)), Start(5, A)),
    "second failure 59 s ago": (
        KEEP,
        replace(NOTHING_RUNS, failures=failed(2, 59)),
        KeepWaiting(1.0),
    ),
    "tenth failure 599 s ago": (
        KEEP,
        replace(NOTHING_RUNS, failures=failed(10, 599)),
        KeepWaiting(1.0),
    ),
    "tenth failure 600 s ago": (KEEP, replace(NOTHING_RUNS, failures=failed(10, 600)), Start(5, A)),
    "failures were cleared": (KEEP, replace(NOTHING_RUNS, failures=failed(0, 1)), Start(5, A)),
    "a failure in the future": (KEEP, replace(NOTHING_RUNS, failures=failed(3, -99)), Start(5, A)),
    "another revision's failure": (
        KEEP,
        replace(NOTHING_RUNS, failures=failed(3, 1, revision=B)),
        Start(5, A),
    ),
    # --- spawned, not seen yet ---
    "on its way": (
        KEEP,
        with_runtime(UNBORN, started_at=ago(5.9)),
        KeepWaiting(0.1),
    ),
    "on its way holds the lock": (
        KEEP,
        replace(with_runtime(UNBORN, started_at=ago(1)), is_locked=True),
        KeepWaiting(0.1),
    ),
    "never came": (
        KEEP,
        with_runtime(UNBORN, started_at=ago(6)),
        MarkFailed("the server was never started: its worker ended first", counts=False),
    ),
    "never came, but the lane is locked": (
        KEEP,
        replace(with_runtime(UNBORN, started_at=ago(6)), is_locked=True),
        Sweep(),
    ),
    "its shim ended of itself": (
        KEEP,
        replace(with_runtime(UNBORN, started_at=ago(1)), is_stillborn=True),
        MarkFailed(),
    ),
    "its shim ended of itself, but the lane is locked": (
        KEEP,
        replace(with_runtime(UNBORN, started_at=ago(1)), is_stillborn=True, is_locked=True),
        Sweep(),
    ),
    "its shim is young, whatever the clock says": (
        KEEP,
        replace(with_runtime(UNBORN, started_at=later(99)), age=2),
        KeepWaiting(0.1),
    ),
    "spawned in the future": (
        KEEP,
        with_runtime(UNBORN, started_at=later(99)),
        MarkFailed("the server was never started: its worker ended first", counts=False),
    ),
    # --- starting ---
    "loads": (KEEP, STARTING, KeepWaiting(0.25)),
    "loads for a second": (KEEP, replace(STARTING, age=1.0), KeepWaiting(0.05)),
    "loads for two seconds": (KEEP, replace(STARTING, age=2.0), KeepWaiting(0.1)),
    "answers": (KEEP, replace(STARTING, is_healthy=True), MarkReady()),
    "just within the load timeout": (KEEP, replace(STARTING, age=599.9), KeepWaiting(0.25)),
    "load timeout": (
        KEEP,
        replace(STARTING, age=600),
        SendTerm("It did not become ready within 600 s."),
    ),
    "load timeout with a known trouble": (
        KEEP,
        replace(STARTING, age=600, trouble="its health path /x answers 404"),
        SendTerm("It did not become ready within 600 s: its health path /x answers 404"),
    ),
    "answers without its key": (
        KEEP,
        replace(STARTING, age=2, is_open=True, trouble="it answers without its API key"),
        SendTerm("it answers without its API key"),
    ),
    "healthy at the last moment": (KEEP, replace(STARTING, age=600, is_healthy=True), MarkReady()),
    "the port is another's": (
        KEEP,
        replace(STARTING, is_port_foreign=True, trouble="another program listens on port 7"),
        SendTerm("another program listens on port 7"),
    ),
    "clock stepped while loading": (
        KEEP,
        with_runtime(STARTING, started_at=ago(7200)),
        KeepWaiting(0.25),
    ),
    "loads what is no longer wanted": (OTHER, STARTING, SendTerm()),
    "loads, then unload": (UNLOAD, STARTING, SendTerm()),
    "loads, then reload": (Wanted(6, A, is_reload=True, fresh_from=6), STARTING, SendTerm()),
    "loads, then another owner": (Wanted(6, A, fresh_from=6), STARTING, CarryOn(6)),
    "loads, and back again": (Wanted(7, A), STARTING, CarryOn(7)),
    "died while loading": (KEEP, gone(STARTING), MarkFailed()),
    "died while loading, unwanted": (OTHER, gone(STARTING), MarkFailed()),
    "died, grandchildren live": (KEEP, gone(STARTING, is_locked=True), Sweep()),
    # --- ready ---
    "as wanted": (KEEP, READY, Nothing()),
    "ready, another target": (OTHER, READY, BeginDrain(later(30))),
    "ready, unload": (UNLOAD, READY, BeginDrain(later(30))),
    "ready, reload": (Wanted(6, A, is_reload=True, fresh_from=6), READY, SendTerm()),
    "ready, another owner": (Wanted(6, A, fresh_from=6), READY, BeginDrain(later(30))),
    "ready, there and back unseen": (Wanted(7, A), READY, CarryOn(7)),
    "ready for a minute with failures": (
        KEEP,
        replace(with_runtime(READY, ready_at=ago(60)), failures=failed(2, 500)),
        ClearFailures(),
    ),
    "ready for less with failures": (
        KEEP,
        replace(with_runtime(READY, ready_at=ago(59.9)), failures=failed(2, 500)),
        Nothing(),
    ),
    "killed before a minute": (KEEP, gone(with_runtime(READY, ready_at=ago(59.9))), MarkFailed()),
    "killed after a minute": (
        KEEP,
        gone(with_runtime(READY, ready_at=ago(60))),
        MarkFailed(counts=False, was_steady=True),
    ),
    "killed again within ten minutes": (
        KEEP,
        gone(READY, failures=exited(599.9)),
        MarkFailed(counts=True, was_steady=True),
    ),
    "killed again after ten minutes": (
        KEEP,
        gone(READY, failures=exited(600)),
        MarkFailed(counts=False, was_steady=True),
    ),
    "killed, and never reported ready": (
        KEEP,
        gone(with_runtime(READY, ready_at=None)),
        MarkFailed(),
    ),
    "the host was restarted": (
        KEEP,
        replace(READY, process=Process.REBOOTED),
        MarkStopped("the host was restarted"),
    ),
    "the host was restarted while loading": (
        KEEP,
        replace(STARTING, process=Process.REBOOTED),
        MarkStopped("the host was restarted"),
    ),
    # --- draining ---
    "requests run": (OTHER, replace(DRAINING, barrier=Barrier.BUSY), KeepWaiting(0.1)),
    "nobody knows": (OTHER, DRAINING, KeepWaiting(0.1)),
    "has just begun to drain": (
        OTHER,
        with_runtime(DRAINING, drain_until=later(29.5)),
        KeepWaiting(0.03),
    ),
    "all is quiet": (OTHER, replace(DRAINING, barrier=Barrier.ZERO), SendTerm()),
    "at drain_until": (OTHER, with_runtime(DRAINING, drain_until=NOON), KeepWaiting(0.1)),
    "just before a second after": (
        OTHER,
        with_runtime(DRAINING, drain_until=ago(0.99)),
        KeepWaiting(0.1),
    ),
    "a second after drain_until": (OTHER, with_runtime(DRAINING, drain_until=ago(1)), SendTerm()),
    "a newer order keeps the deadline": (Wanted(9, 3), DRAINING, KeepWaiting(0.1)),
    "back to what is loaded": (Wanted(7, A), DRAINING, CarryOn(7)),
    "back, but for another owner": (Wanted(7, A, fresh_from=7), DRAINING, KeepWaiting(0.1)),
    "another owner's drain goes on": (Wanted(6, A, fresh_from=6), DRAINING, KeepWaiting(0.1)),
    "reload while draining": (Wanted(7, A, is_reload=True, fresh_from=7), DRAINING, SendTerm()),
    "clock set back while draining": (
        OTHER,
        with_runtime(DRAINING, drain_until=later(3600)),
        BeginDrain(later(30)),
    ),
    "ended by itself while draining": (OTHER, gone(DRAINING), MarkStopped()),
    # --- stopping ---
    "TERM is out": (OTHER, STOPPING, KeepWaiting(0.1)),
    "half the time": (OTHER, with_runtime(STOPPING, term_at=ago(10)), SendSecondTerm()),
    "just before half": (OTHER, with_runtime(STOPPING, term_at=ago(9.9)), KeepWaiting(0.1)),
    "the second is out": (
        OTHER,
        with_runtime(STOPPING, term_at=ago(10), signals_sent=2),
        KeepWaiting(0.1),
    ),
    "three quarters": (
        OTHER,
        with_runtime(STOPPING, term_at=ago(15), signals_sent=2),
        SendKill(),
    ),
    "three quarters, second missed": (
        OTHER,
        with_runtime(STOPPING, term_at=ago(15)),
        SendKill(),
    ),
    "KILL is out": (
        OTHER,
        with_runtime(STOPPING, term_at=ago(16), signals_sent=3),
        KeepWaiting(0.1),
    ),
    "all the time is over": (
        OTHER,
        with_runtime(STOPPING, term_at=ago(20), signals_sent=3),
        Sweep(),
    ),
    "all the time is over, but KILL was missed": (
        OTHER,
        with_runtime(STOPPING, term_at=ago(99), signals_sent=1),
        SendKill(),
    ),
    "wanted again, too late": (KEEP, STOPPING, KeepWaiting(0.1)),
    "clock set back while stopping": (
        OTHER,
        with_runtime(STOPPING, term_at=later(3600), reason="why"),
        SendTerm("why"),
    ),
    "ended": (OTHER, gone(STOPPING), MarkStopped()),
    "ended, it had failed": (
        OTHER,
        gone(with_runtime(STOPPING, reason="why")),
        MarkFailed("why"),
    ),
    "ended, grandchildren live": (OTHER, gone(STOPPING, is_locked=True), Sweep()),
}


@pytest.mark.parametrize("name", CASES)
def test_step(name: str) -> None:
    wanted, seen, expected = CASES[name]
    assert next_step(wanted, seen, LIMITS, NOON) == expected


def test_a_server_satisfies_only_its_own_revision() -> None:
    running = Running(5, A, Phase.READY, NOON)
    assert satisfies(running, Wanted(5, A))
    assert not satisfies(running, Wanted(6, B))


def test_no_failure_is_always_due() -> None:
    assert retry_due(Failed(A), NOON)
