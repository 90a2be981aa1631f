"""Several edge processes before one model server: its slots hold while they come and go."""

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from gateway.edge.table import LaneRoute
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import Publisher, lane, tokens
from tests.edge_harness import upstream as upstream_at
from tests.edge_processes import (
    Process,
    chat,
    edge_process,
    is_divided,
    load,
    publishing,
    reports,
    soon,
)

pytestmark = [pytest.mark.valkey, pytest.mark.process]
ROOM = {"SLOTSERVE_QUEUE_PER_LANE": "128"}  # half of it is for one person
SLOTS = 6
IDS = {"edge/1", "edge/2", "edge/3"}


@dataclass
class Counting:
    """A model server that knows how many requests it had at once."""

    now: int = 0
    most: int = 0

    async def __call__(
        self, seen: upstreams.Seen, _: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer after a moment."""
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(random.random() / 50)
        finally:
            self.now -= 1
        writer.write(upstreams.response(b'{"choices": []}'))
        await writer.drain()


@pytest.fixture
def server() -> Counting:
    return Counting()


@pytest.fixture
async def route(server: Counting) -> AsyncIterator[LaneRoute]:
    async with upstreams.running(server) as fake:
        yield lane(upstream=upstream_at(fake.url, slots=SLOTS))


@pytest.fixture
async def publisher(valkey_server: ValkeyServer, route: LaneRoute) -> AsyncIterator[Publisher]:
    async with publishing(valkey_server.url) as publisher:
        await publisher.publish(route)
        yield publisher


@pytest.fixture
async def edge(valkey_server: ValkeyServer, publisher: Publisher) -> AsyncIterator[Process]:
    with edge_process(valkey_server.url, "--workers", "3", settings=ROOM) as process:
        await process.is_ready()
        await until_living(publisher)
        yield process


async def until_living(publisher: Publisher) -> None:
    """Wait until all three have reported."""
    async with asyncio.timeout(30):
        while {name for name, x in (await reports(publisher)).items() if not x.goodbye} != IDS:
            await asyncio.sleep(0.02)


async def test_processes_together_use_all_slots_and_no_more(
    edge: Process, server: Counting
) -> None:
    async with load(edge.port, connections=24) as asked:
        await asked.more(600)
    assert asked.failed == []
    assert server.most >= SLOTS - 1
    assert server.most <= SLOTS or is_divided(edge)


async def test_slots_hold_while_processes_are_killed_and_come_back(
    edge: Process, server: Counting
) -> None:
    async with load(edge.port, connections=24) as asked:
        await asked.more(100)
        os.kill(next(iter(edge.workers())), signal.SIGKILL)
        await soon(lambda: len(edge.workers()) == 3)
        edge.popen.send_signal(signal.SIGHUP)  # renews all three, one after another
        await asked.more(600)
    assert server.most <= SLOTS or is_divided(edge)
    await soon(lambda: server.now == 0)


async def test_a_limit_a_minute_holds_over_processes(
    valkey_server: ValkeyServer, publisher: Publisher, route: LaneRoute
) -> None:
    await publisher.publish(route, entries=tokens(owner_requests_per_minute=30))
    with edge_process(valkey_server.url, "--workers", "3", settings=ROOM) as edge:
        await edge.is_ready()
        await until_living(publisher)
        begun = time.monotonic()
        answers = await asyncio.gather(*(chat(edge) for _ in range(60)))
        refilled = int((time.monotonic() - begun) / 2) + 1
        statuses = [each.status_code for each in answers]
        is_exact = not is_divided(edge)
    assert set(statuses) == {200, 429}
    assert not is_exact or 30 <= statuses.count(200) <= 30 + refilled
