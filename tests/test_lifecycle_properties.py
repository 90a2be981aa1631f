"""`next_step` against a small model of a host: whatever is ordered and whatever happens, no second
server starts, every stop comes to its end, and the wanted server runs once things are calm."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lanes.lifecycle import next_step
from lanes.steps import (
    KILL,
    SECOND_TERM,
    TERM,
    Barrier,
    BeginDrain,
    CarryOn,
    ClearFailures,
    Failed,
    KeepWaiting,
    Limits,
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

LIMITS = Limits(drain=3, stop=4, load=10, spawn=2)


@dataclass
class Host:
    """One lane's host, with a server that may be deaf, slow, or leave grandchildren."""

    now: datetime = NOON
    wanted: Wanted = field(default_factory=lambda: Wanted(0, None))
    running: Running | None = None
    process: Process = Process.UNBORN
    uptime: float = 0.0  # of the server, by the kernel: clock steps do not touch it
    is_healthy: bool = False
    is_deaf: bool = False
    has_grandchild: bool = False
    leftover: bool = False
    barrier: Barrier = Barrier.UNKNOWN
    failures: dict[int, Failed] = field(default_factory=dict)
    servers: int = 0
    steps: list[Step] = field(default_factory=list)

    def seen(self) -> Seen:
        """What a look would see."""
        return Seen(
            self.running,
            self.process,
            age=self.uptime,
            is_healthy=self.is_healthy,
            barrier=self.barrier,
            is_locked=self.leftover or self.process is Process.LIVING,
            failures=tuple(self.failures.values()),
        )

    def look(self) -> Step:
        """Steps until one waits, as the supervisor does."""
        for _ in range(8):
            step = next_step(self.wanted, self.seen(), LIMITS, self.now)
            self.steps.append(step)
            if isinstance(step, Nothing | KeepWaiting):
                return step
            self.act(step)
            if isinstance(step, SendTerm | SendSecondTerm | SendKill | Sweep | Start):
                return step
        raise AssertionError(f"no rest: {self.steps[-8:]}")

    def act(self, step: Step) -> None:
        """The effect of a step on rows and processes."""
        if isinstance(step, Start):
            assert self.running is None
            assert self.servers == 0
            self.running = Running(step.generation, step.revision_id, Phase.STARTING, self.now)
            self.process, self.servers, self.uptime = Process.LIVING, 1, 0.0
            self.is_healthy = False
            return
        if isinstance(step, Sweep):
            self.leftover = False
            if self.process is Process.LIVING:
                self.die()
            return
        self.report(step)
        self.signal(step)

    def report(self, step: Step) -> None:
        """The effect on the row."""
        assert self.running is not None
        match step:
            case ClearFailures():
                self.failures.pop(self.running.revision_id)
            case MarkStopped() | MarkFailed():
                self.end(step)
            case _:
                self.running = replace(self.running, **self.changes(step, self.running))

    def changes(self, step: Step, running: Running) -> dict[str, Any]:
        """Columns that a step changes."""
        match step:
            case MarkReady():
                assert self.is_healthy
                return {"phase": Phase.READY, "ready_at": self.now}
            case CarryOn() if running.phase is Phase.DRAINING:
                kept: dict[str, Any] = {"phase": Phase.READY, "drain_until": None}
                return {**kept, "generation": step.generation}
            case CarryOn():
                return {"generation": step.generation}
            case BeginDrain():
                return {"phase": Phase.DRAINING, "drain_until": step.until}
            case SendTerm():
                stopping = {"phase": Phase.STOPPING, "term_at": self.now}
                return {**stopping, "signals_sent": TERM, "reason": step.reason}
            case _:
                return {"signals_sent": KILL if isinstance(step, SendKill) else SECOND_TERM}

    def end(self, step: MarkStopped | MarkFailed) -> None:
        """The process is gone, and the row says so."""
        assert self.running is not None
        assert self.servers == 0
        assert not self.leftover
        if isinstance(step, MarkFailed) and step.counts:
            old = self.failures.get(self.running.revision_id, Failed(self.running.revision_id))
            self.failures[old.revision_id] = replace(old, count=old.count + 1, failed_at=self.now)
        self.running, self.process = None, Process.UNBORN

    def signal(self, step: Step) -> None:
        """The effect on the process."""
        if isinstance(step, SendKill) or (isinstance(step, SendTerm) and not self.is_deaf):
            self.die()

    def die(self) -> None:
        """The process ends; a grandchild of it may not."""
        if self.process is Process.LIVING:
            self.process, self.servers = Process.GONE, 0
            self.leftover = self.leftover or self.has_grandchild

    def pass_time(self, seconds: float) -> None:
        """Time goes by on both clocks."""
        self.now += timedelta(seconds=seconds)
        self.uptime += seconds


targets = st.sampled_from([None, 1, 2])
events = st.lists(
    st.one_of(
        st.tuples(st.just("order"), targets, st.sampled_from(["plain", "reload", "owner"])),
        st.tuples(st.just("time"), st.floats(0.05, 8)),
        st.tuples(st.just("clock"), st.floats(-7200, 7200)),
        st.tuples(st.just("health"), st.booleans()),
        st.tuples(st.just("is_deaf"), st.booleans()),
        st.tuples(st.just("has_grandchild"), st.booleans()),
        st.tuples(st.just("barrier"), st.sampled_from(Barrier)),
        st.tuples(st.just("crash"), st.none()),
        st.tuples(st.just("look"), st.none()),
    ),
    max_size=40,
)


def happen(host: Host, event: tuple[object, ...]) -> None:
    """One event; every one is followed by a look."""
    match event:
        case ("order", target, kind):
            generation = host.wanted.generation + 1
            fresh = host.wanted.fresh_from if kind == "plain" else generation
            revision = target if isinstance(target, int) else None
            host.wanted = Wanted(generation, revision, kind == "reload", fresh)
        case ("time", float(seconds)):
            host.pass_time(seconds)
        case ("clock", float(seconds)):
            host.now += timedelta(seconds=seconds)
        case ("health", value):
            host.is_healthy = bool(value) and host.process is Process.LIVING
        case ("crash", _):
            host.die()
        case (("is_deaf" | "has_grandchild" | "barrier") as name, value):
            setattr(host, name, value)
    host.look()


@given(events)
@settings(max_examples=300)
def test_whatever_happens_there_is_one_server_and_calm_brings_the_wanted_one(
    history: list[tuple[object, ...]],
) -> None:
    host = Host()
    for event in history:
        happen(host, event)
        assert host.servers <= 1
    host.wanted = replace(host.wanted, is_reload=False)
    host.has_grandchild = False
    for _ in range(400):
        host.is_healthy = host.process is Process.LIVING
        host.pass_time(5)
        step = host.look()
        if isinstance(step, Nothing) and host.servers == (host.wanted.revision_id is not None):
            break
    else:
        raise AssertionError(f"never calm: {host}")
    if host.running is not None:
        assert host.running.revision_id == host.wanted.revision_id
        assert host.running.phase is Phase.READY


@given(st.booleans(), st.sampled_from(Barrier), st.floats(0.05, 0.5))
def test_from_an_order_to_the_end_of_a_server_is_drain_plus_stop_at_most(
    is_deaf: bool, barrier: Barrier, pace: float
) -> None:
    host = Host(wanted=Wanted(1, 1), is_deaf=is_deaf, barrier=barrier)
    host.look()
    host.is_healthy = True
    host.look()
    host.wanted = Wanted(2, None)
    begun = host.now
    while host.servers:
        host.look()
        host.pass_time(pace)
    took = (host.now - begun).total_seconds()
    assert took <= LIMITS.drain + 1 + LIMITS.stop * 3 / 4 + 4 * pace


@given(st.lists(targets, min_size=1, max_size=10), st.floats(0.01, 0.5))
def test_newer_orders_never_prolong_a_drain(orders: list[int | None], pace: float) -> None:
    host = Host(wanted=Wanted(1, 3), barrier=Barrier.BUSY)
    host.look()
    host.is_healthy = True
    host.look()
    host.wanted = Wanted(2, None)
    host.look()
    deadline = host.running.drain_until if host.running else None
    for number, target in enumerate(orders):
        host.wanted = Wanted(3 + number, target)
        host.pass_time(pace)
        host.look()
        if host.running is None or host.running.phase is not Phase.DRAINING:
            break
        assert host.running.drain_until == deadline


@given(st.integers(1, 20), st.floats(0, 700))
def test_nothing_starts_before_its_retry_and_the_wait_is_told(count: int, passed: float) -> None:
    failed = Failed(1, count, NOON)
    now = NOON + timedelta(seconds=passed)
    step = next_step(Wanted(1, 1), Seen(failures=(failed,)), LIMITS, now)
    if isinstance(step, KeepWaiting):
        due = now + timedelta(seconds=step.next_look)
        again = next_step(Wanted(1, 1), Seen(failures=(failed,)), LIMITS, due)
        assert isinstance(again, Start)
    else:
        assert passed >= 30
