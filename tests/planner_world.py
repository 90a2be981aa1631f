"""A simulated host that carries the planner's orders out, with people who change their minds."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

from bookings.planner import decide
from bookings.situation import Decision, Failure, Report, Situation, Standing, Target
from lanes.backoff import retry_wait
from tests.builders import NOON
from tests.planner_facts import LOADS, standing_after


@dataclass(frozen=True, slots=True)
class Seen:
    """One decision, the facts it was made from, and the order that came of it."""

    at: datetime
    decision: Decision
    facts: Situation
    after: Standing

    @property
    def is_change(self) -> bool:
        """Whether it gave the host something to do."""
        order = self.facts.order
        return order is None or order.generation != self.after.generation


@dataclass
class World:
    """One lane, its planner and its host: deterministic for a seed.

    The host drains and stops what runs, then loads with noisy times; a preset fails as often as
    `failing` says, rests and is tried again in the same generation. Estimates are the mean of the
    last five loads, so they move while bookings wait.
    """

    seed: int
    situation: Situation
    failing: dict[str, float] = field(default_factory=dict)
    crashing: float = 0.0  # chance that a server dies while it is ready
    noise: tuple[float, float] = (0.4, 2.5)  # of a load, times its first estimate
    now: datetime = NOON
    history: dict[str, list[float]] = field(default_factory=dict)
    failures: dict[int, Failure] = field(default_factory=dict)
    failed_for: dict[int, int | None] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    failed_at: list[tuple[datetime, int]] = field(default_factory=list)
    actions: list[tuple[datetime, Callable[["World"], None]]] = field(default_factory=list)
    _events: list[tuple[datetime, int, Callable[[], None]]] = field(default_factory=list)
    _ticks: set[datetime] = field(default_factory=set)
    _serial: int = 0
    _attempt: int = 0  # what a host's pending step belongs to; a newer attempt voids it

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    # --- the clock
    def run(self, until: datetime) -> None:
        """Live through the time until then: beats, ticks, the host's steps, people's actions."""
        for moment, action in self.actions:
            self._at(moment, lambda action=action: action(self))  # type: ignore[misc]
        self._beat()
        while self._events and self._events[0][0] <= until:
            self.now, _, event = heapq.heappop(self._events)
            event()
            self._plan()

    def _at(self, moment: datetime, event: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self._events, (moment, self._serial, event))

    def _after(self, seconds: float, event: Callable[[], None]) -> None:
        attempt = self._attempt
        moment = self.now + timedelta(seconds=seconds)
        self._at(moment, lambda: event() if attempt == self._attempt else None)

    def _beat(self) -> None:
        self._at(self.now + timedelta(seconds=self.random.uniform(20, 100)), self._beat)

    # --- the planner's service
    def _plan(self) -> None:
        self.situation = self._facts()
        before, decision = self.situation.order, decide(self.situation, self.now)
        after = standing_after(before, decision, self.now)
        self.seen.append(Seen(self.now, decision, self.situation, after))
        self.situation = replace(self.situation, order=after)
        if self.seen[-1].is_change:
            self._obey()
        if decision.reconsider_at is not None and decision.reconsider_at not in self._ticks:
            self._ticks.add(decision.reconsider_at)
            self._at(decision.reconsider_at, lambda: None)

    def _facts(self) -> Situation:
        """The facts as they are now, with new estimates and without the failures of the past."""
        live = {c.booking_id for c in self.situation.claims if c.end > self.now}
        for revision, booking_id in list(self.failed_for.items()):
            if booking_id is not None and booking_id not in live:
                self.failures.pop(revision, None)
                del self.failed_for[revision]
        s = self.situation
        return replace(
            s,
            claims=tuple(replace(c, target=self._estimated(c.target)) for c in s.claims),
            choice=s.choice and replace(s.choice, target=self._estimated(s.choice.target)),
            default=self._estimated(s.default),
            order=s.order and replace(s.order, target=self._estimated(s.order.target)),
            failures=tuple(self.failures.values()),
        )

    def _estimated(self, wanted: Target | None) -> Target | None:
        if wanted is None:
            return None
        loads = self.history.get(wanted.preset, [])[-5:] or [LOADS[wanted.preset]]
        return replace(wanted, load_seconds=sum(loads) / len(loads))

    # --- the host
    def _obey(self) -> None:
        self._attempt += 1
        report = self.situation.report
        if report is not None and report.phase in ("starting", "ready", "draining"):
            self.situation = replace(
                self.situation, report=replace(report, phase="draining", phase_since=self.now)
            )
            self._after(self.random.uniform(0, 50), self._stopped)
        else:
            self._stopped()

    def _stopped(self) -> None:
        self.situation = replace(self.situation, report=None)
        wanted = self._order().target
        failure = self.failures.get(wanted.revision_id) if wanted is not None else None
        rest = retry_wait(failure.count) if failure is not None else 0.0
        rested = (self.now - failure.failed_at).total_seconds() if failure is not None else 0.0
        self._after(max(0.0, rest - rested), self._start)

    def _start(self) -> None:
        if self._order().target is None:
            return
        wanted = self._wanted()
        self._say("starting", wanted.revision_id)
        took = LOADS[wanted.preset] * self.random.uniform(*self.noise)
        if self.random.random() < self.failing.get(wanted.preset, 0.0):
            self._after(took * self.random.random(), self._fail)
        else:
            self._after(took, lambda: self._ready(took))

    def _ready(self, took: float) -> None:
        wanted = self._wanted()
        self.history.setdefault(wanted.preset, []).append(took)
        self._say("ready", wanted.revision_id)
        if self.random.random() < self.crashing / 4:
            self._after(self.random.uniform(0, 59), self._fail)
        else:
            self._after(60, self._succeeded)

    def _succeeded(self) -> None:
        self.failures.pop(self._wanted().revision_id, None)
        if self.random.random() < self.crashing:  # a first exit after a minute restarts at once
            self._after(self.random.uniform(1, 3600), self._start)

    def _fail(self) -> None:
        revision = self._wanted().revision_id
        count = self.failures[revision].count + 1 if revision in self.failures else 1
        self.failures[revision] = Failure(revision, count, self.now)
        self.failed_for[revision] = self._order().booking_id
        self.failed_at.append((self.now, revision))
        self._say("failed", revision)
        self._after(retry_wait(count), self._start)

    def _say(self, phase: str, revision: int) -> None:
        report = Report(self._order().generation, revision, phase, self.now)
        self.situation = replace(self.situation, report=report)

    def _order(self) -> Standing:
        assert self.situation.order is not None
        return self.situation.order

    def _wanted(self) -> Target:
        wanted = self._order().target
        assert wanted is not None
        return wanted
