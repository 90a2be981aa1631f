"""What an edge bears: thousands who only listen, and a Valkey that is away under load."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import Running, edge_at, lane, until
from tests.edge_harness import upstream as upstream_at
from tests.edge_processes import load
from wire.edges import USAGE_STREAM
from wire.usage import decode_entry

pytestmark = pytest.mark.valkey
IDLE = 2_000
AWAY_SECONDS = 3.0


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url) as running, upstreams.running(upstreams.llama) as fake:
        await running.publish(lane(upstream=upstream_at(fake.url)))
        yield running
        await until(lambda: running.in_flight == 0)


def _port(edge: Running) -> int:
    return urlsplit(edge.url).port or 0


async def test_two_thousand_idle_connections_take_nothing_from_others(edge: Running) -> None:
    held: list[asyncio.StreamWriter] = []
    try:
        while len(held) < IDLE:
            opening = [asyncio.open_connection("127.0.0.1", _port(edge)) for _ in range(100)]
            held += [writer for _, writer in await asyncio.gather(*opening)]
        connections = edge.server.server_state.connections
        await until(lambda: len(connections) >= IDLE)
        assert (await edge.chat()).status_code == 200
        assert len(connections) >= IDLE
    finally:
        for writer in held:
            writer.transport.abort()
    await until(lambda: len(connections) <= 1)


async def test_a_valkey_that_is_away_under_load_costs_no_request_and_no_record(
    edge: Running, valkey_server: ValkeyServer
) -> None:
    async with load(_port(edge), connections=2) as result:
        await result.more(20)
        with valkey_server.paused():
            away_until, served = time.monotonic() + AWAY_SECONDS, result.served
            await until(lambda: time.monotonic() > away_until)
            assert result.served > served
        await result.more(20)
    assert result.failed == []
    async with asyncio.timeout(20):
        while len(await _recorded(edge)) < result.served:
            await asyncio.sleep(0.05)
    assert len(await _recorded(edge)) == result.served
    assert edge.edge.usage.dropped == 0


async def _recorded(edge: Running) -> set[str]:
    entries: Any = await edge.publisher.client.xrange(USAGE_STREAM)
    return {each.request_id for _, fields in entries for each in decode_entry(fields) if each}
