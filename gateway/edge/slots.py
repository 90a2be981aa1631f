"""Slots of lanes: how many requests may be at a model server at once, over all edges."""

import asyncio
import logging
from collections.abc import Callable

from gateway.edge.company import Company, Question
from wire.edges import SLOTS_PREFIX

logger = logging.getLogger(__name__)
_Takers = list["asyncio.Future[bool]"]


class Slots:
    """What this edge holds of each lane. While others live, `Shared` asks for it in batches."""

    def __init__(self, company: Company | None = None) -> None:
        self.on_free: Callable[[str], None] = _nobody_waits
        self.excess = 0  # requests that were let in beyond a lane's slots while Valkey was away
        self._company = company or Company()
        self._held: dict[str, int] = {}
        self._slots: dict[str, int] = {}  # as last asked for
        self._takers: dict[str, _Takers] = {}
        self._untold: set[str] = set()  # lanes of which Valkey may not know what is held
        self._refused: set[str] = set()
        self._over: set[str] = set()
        self._asked: dict[str, _Takers] = {}  # of the call in flight

    def held(self, lane: str) -> int:
        """How many this edge holds."""
        return self._held.get(lane, 0)

    def take_now(self, lane: str, slots: int) -> bool | None:
        """Take one of so many, or not; None: other edges must be asked."""
        if not self._company.is_alone:
            return None
        return self._take_own(lane, slots, slots)

    async def take(self, lane: str, slots: int) -> bool:
        """Take one of so many, asking the other edges; without an answer, of this edge's share."""
        if self._company.is_alone or self._company.is_away:
            return self._take_own(lane, slots, self._share(slots))
        taker: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._takers.setdefault(lane, []).append(taker)
        self._slots[lane] = slots
        self._company.wanted.set()
        try:
            return await taker
        except asyncio.CancelledError:
            if taker.done() and not taker.cancelled() and taker.result():
                self.give(lane)
            raise

    def give(self, lane: str) -> None:
        """Give one back; others hear of it soon."""
        held = self._held[lane] - 1
        if held:
            self._held[lane] = held
        else:
            del self._held[lane]
        self._untold.add(lane)
        if not self._company.is_alone:
            self._company.wanted.set()

    def freed(self, lane: str) -> None:
        """Another edge says that this lane may have a free slot."""
        self._refused.discard(lane)
        self.on_free(lane)

    def tick(self) -> None:
        """Once a second: tell what is held, and let those ask again who were refused."""
        if not self._company.is_alone:
            self.tell_all()
        for lane in tuple(self._refused):
            self.freed(lane)

    def tell_all(self) -> None:
        """Say with the next call what is held, on all lanes."""
        self._untold |= self._held.keys()
        self._company.wanted.set()

    def question(self) -> Question:
        """What is asked and told now."""
        self._asked, self._takers = self._takers, {}
        lanes = self._untold | self._asked.keys()
        self._untold = set()
        for lane in lanes:
            self._asked.setdefault(lane, [])
        arguments: list[str | int | float] = [len(self._asked)]
        for lane, takers in self._asked.items():
            wanted = sum(not taker.done() for taker in takers)
            arguments += (lane, self._held.get(lane, 0), wanted, self._slots.get(lane, 0))
        return Question([SLOTS_PREFIX + lane for lane in self._asked], arguments)

    def answer(self, lanes: list[tuple[int, int, int]]) -> None:
        """Hand out what was granted, in the order of asking; give back what nobody takes."""
        asked, self._asked = self._asked, {}
        for (lane, takers), (granted, over, news) in zip(asked.items(), lanes, strict=True):
            self._note_excess(lane, over, news)
            present = [taker for taker in takers if not taker.done()]
            usable = granted
            if self._company.is_alone:  # since then slots may have been taken without asking
                usable = min(granted, max(0, self._slots.get(lane, 0) - self.held(lane)))
            for place, taker in enumerate(present):
                taker.set_result(place < usable)
            taken = min(usable, len(present))
            if taken:
                self._held[lane] = self._held.get(lane, 0) + taken
            if taken < len(present):
                self._refused.add(lane)
            if taken < granted:
                self._untold.add(lane)
                self._company.wanted.set()

    def give_up(self) -> None:
        """There is no answer: whoever waits for one takes of this edge's share."""
        for waiting in (self._asked, self._takers):
            for lane, takers in waiting.items():
                self._untold.add(lane)
                slots = self._slots.get(lane, 0)
                for taker in takers:
                    if not taker.done():
                        taker.set_result(self._take_own(lane, slots, self._share(slots)))
        self._asked, self._takers = {}, {}

    def _share(self, slots: int) -> int:
        return max(1, slots // self._company.edges)

    def _take_own(self, lane: str, slots: int, most: int) -> bool:
        held = self._held.get(lane, 0)
        if held >= most:
            self._refused.add(lane)
            return False
        self._held[lane] = held + 1
        self._slots[lane] = slots
        self._untold.add(lane)
        return True

    def _note_excess(self, lane: str, over: int, news: int) -> None:
        """Count what went beyond; say so once, until the lane is within its slots again."""
        self.excess += news
        if not over:
            self._over.discard(lane)
        elif news and lane not in self._over:
            self._over.add(lane)
            logger.warning(
                "lane %s: %d requests beyond its slots were let in while Valkey was away",
                lane,
                over,
            )


def _nobody_waits(_: str) -> None:
    return
