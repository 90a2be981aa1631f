"""A gate on a clock of its own, and everybody who has come to it."""

import asyncio
import random
from typing import Any
from unittest.mock import Mock

from gateway.edge.clock import EdgeClock
from gateway.edge.config import EdgeConfig
from gateway.edge.exchange import Exchange
from gateway.edge.gate import Gate
from gateway.edge.prefer import Patience
from gateway.edge.queue import Turn
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routing import Asked, Caller
from gateway.edge.slots import Slots
from gateway.edge.table import digest_of
from tests.edge_harness import MEMBER, OWNER, grant, key_of, lane, table, upstream

PATIENT = Patience(60.0, 60.0)


def turn(model: str = "qwen", owner: int = MEMBER, patience: Patience = PATIENT) -> Turn:
    caller = Caller(digest_of(key_of(owner).encode()))
    return Turn(caller, Asked(model), patience=patience)


class World:
    """A gate with a clock of its own, and everybody who has come to it."""

    def __init__(self, slots: Slots | None = None, **config: Any) -> None:
        self.now = 1000.0
        clock = EdgeClock(monotonic=lambda: self.now, wall=lambda: self.now)
        self.slots = slots or Slots()
        self.gate = Gate(EdgeConfig("redis://nowhere", "e", **config), clock, Mock(), self.slots)
        self.inside: list[tuple[Turn, Exchange]] = []
        self.waiting: list[Turn] = []
        self.refused: list[Turn] = []
        self.come = self.done = 0
        self.hold()

    def hold(self, a: str = "qwen", b: str = "qwen", slots: int = 2, booked: str = "") -> None:
        """Lanes a and b run these presets; empty: they load qwen. A booking of one may begin."""
        lanes = []
        for slug, preset in (("a", a), ("b", b)):
            server = upstream(f"http://{slug}", preset, slots=slots) if preset else None
            grants = (grant(OWNER, self.now + 5, self.now + 10),) if booked == slug else ()
            phase = "ready" if preset else "starting"
            lanes.append(lane(slug, upstream=server, phase=phase, grants=grants))
        found = table(*lanes, confirmed_at=self.now)
        self.gate.table = lambda: found
        self.gate.review_all()
        self._collect()

    def arrive(self, model: str = "qwen", owner: int = MEMBER) -> Turn:
        """Somebody new."""
        mine = turn(model, owner)
        self.come += 1
        self.gate.waiters.catch_up()
        found = self.gate.enter(mine)
        if isinstance(found, Exchange):
            self._let_in(mine, found)
        elif isinstance(found, EdgeRefusal) and self.gate.waiters.join(mine, found) is None:
            self.waiting.append(mine)
        else:
            self.refused.append(mine)
        self._collect()
        return mine

    def finish(self, at: int) -> None:
        """Somebody inside is done."""
        _, exchange = self.inside.pop(at % len(self.inside))
        self.gate.leave(exchange)
        self.done += 1
        self._collect()

    def give_up(self, at: int) -> None:
        """Somebody who waits leaves."""
        mine = self.waiting.pop(at % len(self.waiting))
        self.gate.waiters.abandon(mine)
        self.refused.append(mine)

    def later(self, seconds: float) -> None:
        """Time passes; the edge's sweep walks."""
        self.now += seconds
        self.gate.sweep()
        self._collect()

    def wait(self, seconds: float) -> None:
        """Time passes, and nobody has looked yet."""
        self.now += seconds

    def _collect(self) -> None:
        for mine in [each for each in self.waiting if each.outcome is not None]:
            self.waiting.remove(mine)
            outcome = self.gate.waiters.take(mine)
            if isinstance(outcome, Exchange):
                self._let_in(mine, outcome)
            else:
                self.refused.append(mine)

    def _let_in(self, mine: Turn, exchange: Exchange) -> None:
        self.inside.append((mine, exchange))
        for other in self.waiting:
            if other.number < mine.number and other.outcome is None:
                assert exchange.route.lane.slug not in self.servable(other)

    def servable(self, mine: Turn) -> list[str]:
        """The lanes that would serve it, slots or not."""
        found = self.gate.routes(mine)
        return [] if isinstance(found, EdgeRefusal) else [each.lane.slug for each in found]

    def held(self, slug: str) -> int:
        return sum(exchange.route.lane.slug == slug for _, exchange in self.inside)

    def check(self, slots: int, *, is_quiet: bool) -> None:
        """Whatever has happened."""
        assert sum(self.gate.waiting.values()) == len(self.waiting)
        known = len(self.inside) + len(self.waiting) + len(self.refused)
        assert known + self.done == self.come
        assert sum(self.gate.in_flight.values()) == len(self.inside)
        for slug in ("a", "b"):
            assert self.held(slug) <= slots
            if is_quiet and any(slug in self.servable(each) for each in self.waiting):
                assert self.held(slug) == slots  # nobody waits for a slot that is free


class SharedSlots(Slots):
    """Slots that other edges share: each question takes a while, and some are lost to others."""

    def __init__(self, slots: int) -> None:
        super().__init__()
        self.free = slots
        self.least = slots
        self.freed_unseen = 0  # after the next refusal, before anybody could hear of it

    def take_now(self, lane: str, slots: int) -> bool | None:
        return None

    async def take(self, lane: str, slots: int) -> bool:
        await asyncio.sleep(random.random() / 1000)
        if self.free == 0:
            self.free, self.freed_unseen = self.freed_unseen, 0
            return False
        self.free -= 1
        self.least = min(self.least, self.free)
        return True

    def give(self, lane: str) -> None:
        self.free += 1
