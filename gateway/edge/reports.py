"""Tells the hosts what this edge has seen and what it has in flight: the drain barrier's word."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping

from gateway.edge.clock import EdgeClock
from gateway.edge.pauses import pause
from gateway.edge.table import Table
from gateway.edge.valkey import BROKEN
from wire.edges import HEARTBEAT_SECONDS, EdgeReport, LaneCount

logger = logging.getLogger(__name__)
COALESCE_SECONDS = 0.1  # ordinary changes of a count wait so long for each other
_GOODBYE_SECONDS = 2.0


class Reporter:
    """Writes a report on change and as a heartbeat, one at a time, so that none overtakes."""

    def __init__(
        self,
        tell: Callable[[EdgeReport], Awaitable[None]],
        edge_id: str,
        clock: EdgeClock,
        facts: Callable[[], tuple[Table | None, Mapping[str, int]]],
        waiting: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        self._tell = tell
        self._edge_id = edge_id
        self._clock = clock
        self._facts = facts
        self._waiting = waiting
        self._changed = asyncio.Event()
        self._urgent = asyncio.Event()
        self._is_silent = False

    def changed(self, slug: str) -> None:
        """A lane's count has changed; zero on a draining lane cannot wait."""
        table, counts = self._facts()
        lane = table.lanes.get(slug) if table is not None else None
        if lane is not None and lane.draining and not counts.get(slug):
            self._urgent.set()
        self._changed.set()

    def urge(self) -> None:
        """A new table is in force: its generations are to be echoed at once."""
        self._urgent.set()
        self._changed.set()

    async def run(self) -> None:
        """Report for ever."""
        while True:
            written_at = time.monotonic()
            self._changed.clear()
            self._urgent.clear()
            try:
                await self.write()
                self._note(is_silent=False)
            except BROKEN:
                self._note(is_silent=True)
            await pause(self._changed, written_at + HEARTBEAT_SECONDS - time.monotonic())
            await pause(self._urgent, written_at + COALESCE_SECONDS - time.monotonic())

    async def goodbye(self) -> None:
        """Leave the barrier; nothing is in flight any more."""
        try:
            async with asyncio.timeout(_GOODBYE_SECONDS):
                await self.write(goodbye=True)
        except BROKEN:
            logger.warning("could not take leave of the hosts: Valkey does not answer")

    async def write(self, *, goodbye: bool = False) -> None:
        """Write one report, true at the moment it is sent."""
        await self._tell(self._report(goodbye=goodbye))

    def _report(self, *, goodbye: bool) -> EdgeReport:
        (table, counts), waiting = self._facts(), self._waiting()
        lanes = {} if table is None else table.lanes
        seen = {
            slug: LaneCount(lane.generation, counts.get(slug, 0), waiting.get(slug, 0))
            for slug, lane in lanes.items()
        }
        gone = {slug: LaneCount(0, count) for slug, count in counts.items() if slug not in lanes}
        at_ms = int(self._clock.valkey_now() * 1000)
        return EdgeReport(self._edge_id, at_ms, seen | gone, goodbye=goodbye)

    def _note(self, *, is_silent: bool) -> None:
        if is_silent != self._is_silent:
            self._is_silent = is_silent
            words = "cannot be told" if is_silent else "are told again"
            logger.warning("the hosts %s what is in flight", words)
