"""Lets in who waits, in order of arrival, as soon as something allows it.

The whole question is asked again for a turn: when the table changes, when a slot is given back
here or at another edge, when a booking begins or ends, and each second. Nothing here waits for a
client, and nothing awaits between a check and its count. The rule: a lane's free slot goes to the
first of those whom that lane would serve now. Who waits for something else (a load, another
model) holds nobody up; who comes later never passes one who could have been served.
"""

import asyncio
import math
from collections.abc import Mapping
from typing import Protocol

from gateway.edge import verdicts
from gateway.edge.clock import EdgeClock
from gateway.edge.config import EdgeConfig
from gateway.edge.exchange import Exchange
from gateway.edge.prefer import default_patience
from gateway.edge.queue import NO_PATIENCE, Queue, Turn, Unsure
from gateway.edge.refusals import EdgeRefusal, refuse
from gateway.edge.routing import active_grant
from gateway.edge.slots import Slots
from gateway.edge.table import Table

STOPPING = refuse("gateway_stopping", "this gateway is being stopped; ask again.", wait=5.0)
CLIENT_GONE = EdgeRefusal(499, "client_gone", "the client has left")
NOTHING_SAID: Mapping[str, bool] = {}


class Door(Protocol):
    """What the gate does for those who wait."""

    def table_in_force(self) -> Table | None:
        """The route table."""

    def enter(self, turn: Turn, told: Mapping[str, bool]) -> Exchange | EdgeRefusal | Unsure:
        """Check and count, knowing what other edges have said of these lanes."""

    def leave(self, exchange: Exchange) -> None:
        """Count no more."""

    def pace(self, slug: str) -> float | None:
        """How many seconds it usually takes until one slot of the lane becomes free."""


class Waiters:
    """The queue of one edge and what moves it."""

    def __init__(self, config: EdgeConfig, clock: EdgeClock, slots: Slots, door: Door) -> None:
        self.queue = Queue()
        self.patience = default_patience(config)
        self.admitted: dict[str, int] = {}  # by lane: those that had waited
        self._config = config
        self._clock = clock
        self._slots = slots
        self._door = door
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = math.inf  # monotonic
        self._to_ask: set[str] = set()  # lanes of which other edges must be asked
        self._urged = asyncio.Event()
        self._is_stopping = False
        self._is_closed = False

    def join(self, turn: Turn, refusal: EdgeRefusal) -> EdgeRefusal | None:
        """Give it a place, or say why it has none."""
        if not self.may_wait(turn, refusal):
            return refusal
        turn.owner = self._owner_of(turn)
        no_place = self._no_place(turn, refusal)
        if no_place is not None:
            return no_place
        if turn.since is None:
            turn.since = self._clock.monotonic()
        turn.last = refusal
        self.queue.join(turn, refusal.lane)
        self._remind(min(turn.deadline, self._next_change()))
        return None

    def may_wait(self, turn: Turn, refusal: EdgeRefusal) -> bool:
        """Whether waiting can help, and is what this request wants. Notes until when."""
        is_load = refusal.code != "lane_busy"
        if not refusal.lane or self._is_closed or (is_load and self._is_stopping):
            return False
        now = self._clock.monotonic()
        since = now if turn.since is None else turn.since
        turn.deadline = since + (turn.patience.for_load if is_load else turn.patience.for_slot)
        needs = (refusal.retry_after or 0) if refusal.code == "model_failed" else 0
        return now + needs < turn.deadline

    def take(self, turn: Turn) -> Exchange | EdgeRefusal:
        """What its waiting has come to; from now on it is the caller's to leave."""
        outcome, turn.outcome = turn.outcome, None
        if outcome is None:
            raise RuntimeError("this turn has not ended")
        return outcome

    def abandon(self, turn: Turn) -> None:
        """Its request is over: no place is kept, and what it was given meanwhile is given back."""
        self.queue.leave(turn)
        if isinstance(turn.outcome, Exchange):
            self._door.leave(turn.outcome)
        turn.outcome = None

    def forsake(self, turn: Turn) -> None:
        """Its client has left: it waits no more, now or later."""
        turn.patience = NO_PATIENCE
        self.end(turn, CLIENT_GONE)

    def end(self, turn: Turn, outcome: Exchange | EdgeRefusal) -> None:
        """Its waiting is over."""
        if not turn.lane:
            return
        self.queue.leave(turn)
        turn.outcome = outcome
        turn.on_end()
        if isinstance(outcome, Exchange):
            slug = outcome.route.lane.slug
            self.admitted[slug] = self.admitted.get(slug, 0) + 1

    def walk(self) -> None:
        """Ask for everybody again."""
        for turn in self.queue:
            if turn.lane:
                self._again(turn)
        self._set_alarm()

    def catch_up(self) -> None:
        """Before a newcomer is looked at: what was to happen by now happens first."""
        if self.queue and self._clock.monotonic() >= self._alarm_at:
            self.walk()

    def freed(self, slug: str) -> None:
        """A slot of this lane may be free: it goes to the first whom the lane would serve."""
        for turn in self.queue.wanting(slug):
            self._again(turn)
            if slug in turn.wanted:
                return

    def begin_stop(self) -> None:
        """No new requests come: who waits for a load would wait in vain, a slot may come free."""
        self._is_stopping = True
        for turn in self.queue:
            if turn.last is not None and turn.last.code != "lane_busy":
                self.end(turn, STOPPING)

    def close(self) -> None:
        """Nobody waits any more."""
        self._is_closed = True
        for turn in self.queue:
            self.end(turn, STOPPING)

    def estimate(self, turn: Turn) -> float | None:
        """Seconds until it may be let in, if anything tells."""
        table = self._door.table_in_force()
        lane = table.lanes.get(turn.lane) if table is not None else None
        if lane is None or turn.last is None:
            return None
        if turn.last.code == "lane_busy":
            pace = self._door.pace(turn.lane)
            return None if pace is None else pace * self.queue.position(turn)
        at = lane.retry_at if turn.last.code == "model_failed" else lane.eta
        left = None if at is None else at - self._clock.now()
        return left if left is not None and left > 0 else None

    async def ask(self, turn: Turn, unsure: Unsure) -> Exchange | EdgeRefusal:
        """Ask other edges for a slot of each lane in question, then check and count."""
        told: dict[str, bool] = {}
        found: Exchange | EdgeRefusal | Unsure = unsure
        while isinstance(found, Unsure):
            slug = found.lane
            is_held = await self._slots.take(slug, found.slots)
            self.catch_up()
            found = self._door.enter(turn, told | {slug: is_held})
            told[slug] = False
            if is_held and not _holds(found, slug):
                self._slots.give(slug)
        return found

    def doubt(self, turn: Turn) -> None:
        """It has joined on the word of other edges, which may be out of date: ask once more."""
        self._to_ask.update(turn.wanted)
        self._urged.set()

    async def run(self) -> None:
        """Ask other edges for those who wait, for ever."""
        while True:
            await self._urged.wait()
            self._urged.clear()
            lanes, self._to_ask = self._to_ask, set()
            await asyncio.gather(*map(self._ask_for_first, lanes))

    async def _ask_for_first(self, slug: str) -> None:
        table = self._door.table_in_force()
        lane = table.lanes.get(slug) if table is not None else None
        if lane is None or lane.upstream is None or lane.upstream.slots is None:
            return
        if not self.queue.wanting(slug) or not await self._slots.take(slug, lane.upstream.slots):
            return
        if not self._hand_over(slug):
            self._slots.give(slug)
        self._to_ask.add(slug)
        self._urged.set()

    def _hand_over(self, slug: str) -> bool:
        """Whether somebody has taken the slot that is held for this lane."""
        for turn in self.queue.wanting(slug):
            found = self._door.enter(turn, {slug: True})
            if isinstance(found, Exchange):
                self.end(turn, found)
                if _holds(found, slug):
                    return True
        return False

    def _again(self, turn: Turn) -> None:
        """Ask the whole question for one turn."""
        told: dict[str, bool] = {}
        while isinstance(found := self._door.enter(turn, told), Unsure):
            told[found.lane] = False
            self._to_ask.add(found.lane)
            self._urged.set()
        if isinstance(found, Exchange) or not self.may_wait(turn, found):
            self.end(turn, found)
        else:
            turn.last = found
            self.queue.move(turn, found.lane)

    def _no_place(self, turn: Turn, refusal: EdgeRefusal) -> EdgeRefusal | None:
        """Why the queue has no place for it: all are taken, or half of them by this person.

        Who has booked the lane for nobody else is alone there and may take all.
        """
        most, slug = self._config.queue_per_lane, refusal.lane
        waiting, share = self.queue.waiting.get(slug, 0), max(1, most // 2)
        if waiting >= most:
            return verdicts.queue_full(slug, waiting, refusal.retry_after) if most else refusal
        if waiting < share:
            return None  # so nobody has more than that
        mine = self.queue.held_by(turn.owner, slug)
        if mine < share or self._is_alone(turn, slug):
            return None
        return verdicts.share_full(slug, mine, refusal.retry_after)

    def _owner_of(self, turn: Turn) -> int | None:
        table, digest = self._door.table_in_force(), turn.caller.digest
        token = table.tokens.get(digest) if table is not None and digest is not None else None
        return token.owner_id if token is not None else None

    def _is_alone(self, turn: Turn, slug: str) -> bool:
        """Whether the booking of this moment is for this person and nobody else."""
        table = self._door.table_in_force()
        lane = table.lanes.get(slug) if table is not None else None
        grant = active_grant(lane, self._clock.now()) if lane is not None else None
        return grant is not None and grant.people == {turn.owner}

    def _next_change(self) -> float:
        """When a booking begins or ends next, monotonic."""
        table = self._door.table_in_force()
        if table is None:
            return math.inf
        now = self._clock.now()
        return self._clock.monotonic() + next_change(table, now) - now

    def _set_alarm(self) -> None:
        deadlines = [turn.deadline for turn in self.queue]
        self._alarm_at = math.inf
        if deadlines:
            self._remind(min(*deadlines, self._next_change()))

    def _remind(self, at: float) -> None:
        """Walk at this monotonic time, or sooner."""
        if at >= self._alarm_at:
            return
        self._alarm_at = at
        if self._alarm is not None:
            self._alarm.cancel()
        delay = at - self._clock.monotonic()
        self._alarm = asyncio.get_running_loop().call_later(max(0.0, delay), self.walk)


def next_change(table: Table, now: float) -> float:
    """When a booking or maintenance begins or ends next, by the table's clock; infinity when none
    does."""
    at = math.inf
    for lane in table.lanes.values():
        grant = next((each for each in lane.grants if each.end > now), None)
        if grant is not None:
            at = min(at, grant.start if grant.start > now else grant.end)
    for closures in table.closures.values():
        times = (time for each in closures for time in (each.start, each.end) if time)
        at = min(at, *(time for time in times if time > now), math.inf)
    return at


def _holds(found: Exchange | EdgeRefusal | Unsure, slug: str) -> bool:
    return isinstance(found, Exchange) and found.has_slot and found.route.lane.slug == slug
