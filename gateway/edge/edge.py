"""One edge: its parts, wired; its loops, started and stopped."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from gateway.edge.answer_headers import RouteNotes
from gateway.edge.call import Parts
from gateway.edge.clock import EdgeClock
from gateway.edge.company import Company
from gateway.edge.config import EdgeConfig
from gateway.edge.cors import Cors
from gateway.edge.gate import Gate
from gateway.edge.gauges import Reading
from gateway.edge.heritage import Heritage
from gateway.edge.holder import TableHolder
from gateway.edge.limits import Limits
from gateway.edge.metering import UsageSink
from gateway.edge.metrics import EdgeMetrics
from gateway.edge.pauses import end_all
from gateway.edge.reports import Reporter
from gateway.edge.roster import Roster
from gateway.edge.shared import Shared
from gateway.edge.slots import Slots
from gateway.edge.spool import SpoolBudget
from gateway.edge.table import Table
from gateway.edge.typical import TypicalTimes
from gateway.edge.upstreams import ServerPool
from gateway.edge.usage_spool import UsageSpool
from gateway.edge.valkey import BROKEN, connect
from wire.edges import HEARTBEAT_SECONDS
from wire.sealing import Sealer

logger = logging.getLogger(__name__)
_AGAIN_SECONDS = 1.0
_SWEEP_SECONDS = 1.0
_FIRST_LOOK_SECONDS = 3.0
_LEAVING_SECONDS = 2.0  # for cancelled requests to close their connections


class Edge:
    """Everything one edge process holds. `running` is its life."""

    def __init__(self, config: EdgeConfig, sealer: Sealer) -> None:
        self.config = config
        self.clock = EdgeClock()
        self._client = connect(config.redis_url)
        self.holder = TableHolder(self._client, sealer, self.clock, self._on_table)
        self.company = Company()
        self.roster = Roster(self._client, config.edge_id, self.clock, self.company)
        self.reporter = Reporter(
            self.roster.beat, config.edge_id, self.clock, self._facts, lambda: self.gate.waiting
        )
        self.slots = Slots(self.company)
        self.gate = Gate(config, self.clock, self.reporter.changed, self.slots)
        spool = UsageSpool(config.usage_folder, config.edge_id, config.usage_bytes)
        self.usage = UsageSink(self._client, spool)
        self.pool = ServerPool(
            sealer,
            connect_seconds=config.connect_seconds,
        )
        self.limits = Limits(self.clock, self.company)
        self.shared = Shared(self._client, self.roster, self.company, self.slots, self.limits)
        self.heritage = Heritage(self._client, self.clock, self.limits)
        self.parts = Parts(
            config,
            self.clock,
            self.holder,
            self.gate,
            self.pool,
            self.slots,
            self.limits,
            SpoolBudget(config.spool_bytes, config.spool_folder),
        )
        self.metrics = EdgeMetrics(config.edge_id, self._reading)
        self.cors = Cors(config.cors_origins) if config.cors_origins else None
        self.typical = TypicalTimes()
        self.notes = RouteNotes(self.clock, self.typical, config.drain_seconds)
        self._changed = asyncio.Event()
        self.is_stopping = False  # on the way out, though requests that come are still served
        self._tie()

    def _tie(self) -> None:
        """Who asks whom, and who tells whom of what."""
        self.gate.table = lambda: self.holder.table
        self.slots.on_free = self.gate.waiters.freed
        self.roster.on_change = self._on_company
        self.roster.on_news = self.reporter.urge
        self.roster.on_freed = self.slots.freed

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Loops run inside; afterwards requests have ended, goodbye is said, all is closed."""
        await self._look_first()
        loops = (
            self.holder.run,
            self.holder.listen,
            self.reporter.run,
            self.roster.listen,
            self.shared.run,
            self.heritage.run,
            self.usage.run,
            self._follow,
            self._sweep,
            self.gate.waiters.run,
        )
        tasks = [asyncio.create_task(_keep_up(loop)) for loop in loops]
        try:
            await self._wait_until_known()
            yield
            await self._wait_until_empty()
        finally:
            await end_all(tasks)
            await self.shared.finish()
            await self.reporter.goodbye()
            await self.usage.flush()
            self.metrics.close()
            self.parts.spools.end()
            await self.pool.close()
            await self._client.aclose()

    async def _look_first(self) -> None:
        """Be known to the hosts, and hold the table, before the first request is taken."""
        with contextlib.suppress(*BROKEN):
            async with asyncio.timeout(_FIRST_LOOK_SECONDS):
                await self.holder.refresh()
                await self.reporter.write()

    async def _wait_until_known(self) -> None:
        """Edges that counted alone until now have had time to hear of this one."""
        if not self.company.is_alone:
            await asyncio.sleep(HEARTBEAT_SECONDS)

    def _on_company(self) -> None:
        """There are more or fewer edges: tell them what is held, or go on from what they knew."""
        self.shared.tell_all()
        if self.company.is_alone:
            self.heritage.wanted.set()

    def _on_table(self, _: Table) -> None:
        """A new table: end what must end, echo its generations, let draining servers go."""
        self.gate.review_all()
        self.reporter.urge()
        self._changed.set()

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self.holder.table is not None:
                await self.pool.follow(self.holder.table.lanes.values())

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self.gate.sweep()
            if self.metrics.is_shared:
                self.metrics.refresh()
            self.slots.tick()
            self.limits.tick()

    def _facts(self) -> tuple[Table | None, Mapping[str, int]]:
        return self.holder.table, self.gate.in_flight

    def _reading(self) -> Reading:
        table = self.holder.table
        return Reading(
            table=table,
            table_age=None if table is None else self.clock.now() - table.confirmed_at,
            in_flight=self.gate.in_flight,
            waiting=self.gate.waiting,
            excess=self.slots.excess,
            usage_dropped=self.usage.dropped,
            usage_buffered=self.usage.buffered,
            usage_spool_bytes=self.usage.spooled_bytes,
        )

    async def _wait_until_empty(self) -> None:
        """Goodbye means nothing is in flight: wait for requests that are just being cancelled."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVING_SECONDS):
                await self.gate.is_empty.wait()


async def _keep_up(loop: Callable[[], Awaitable[None]]) -> None:
    """Run a loop that has no end; if it ends all the same, say so and start it again."""
    while True:
        try:
            await loop()
        except Exception:
            logger.exception("%s broke and starts again", loop.__qualname__)
        await asyncio.sleep(_AGAIN_SECONDS)
