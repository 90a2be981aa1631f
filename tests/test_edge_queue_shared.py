"""Queues of several edges in front of one model server."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_company import edges_at
from tests.edge_harness import Running, until
from tests.waiting_cast import chat, loading, ready, waiting
from wire.edges import FREED_PREFIX

pytest_plugins = ["tests.edge_fixtures"]
pytestmark = pytest.mark.valkey


class Counting:
    """A model server that answers after a moment and knows how many it ever had at once."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def serve(
        self, seen: upstreams.Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One request."""
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(0.02)
        finally:
            self.now -= 1
        await upstreams.llama(seen, reader, writer)


@pytest.fixture
async def edges(valkey_server: ValkeyServer, patient: None) -> AsyncIterator[list[Running]]:
    """Two that know each other."""
    async with edges_at(valkey_server.url, "a", "b", queue_per_lane=50) as both:
        yield both
        assert [each.edge.gate.waiting for each in both] == [{}, {}]
        assert [each.in_flight for each in both] == [0, 0]


async def test_two_edges_fill_the_slots_of_one_server_and_never_more(edges: list[Running]) -> None:
    counting = Counting()
    async with upstreams.running(counting.serve) as fake:
        await edges[0].publish(ready(fake, slots=2))
        await until(lambda: edges[1].version == edges[0].version)
        requests = [chat(edges[number % 2]) for number in range(30)]
        answers = await asyncio.gather(*requests)
    assert [each.status_code for each in answers] == [200] * 30
    assert counting.most == 2


@pytest.mark.usefixtures("unswept")
async def test_a_slot_freed_at_one_edge_lets_in_who_waits_at_the_other_at_once(
    edges: list[Running],
) -> None:
    async with upstreams.running(upstreams.answers_when_released) as fake:
        await edges[0].publish(ready(fake))
        await until(lambda: edges[1].version == edges[0].version)
        first = chat(edges[0])
        await until(lambda: len(fake.seen) == 1)
        second = chat(edges[1])
        await waiting(edges[1], 1)
        client = edges[1].publisher.client
        async with asyncio.timeout(30):
            while len(await client.pubsub_channels(FREED_PREFIX + "*")) < 2:  # both hear of it
                await asyncio.sleep(0.01)
        fake.release.set()
        assert [each.status_code for each in await asyncio.gather(first, second)] == [200, 200]


async def test_both_edges_let_in_who_waited_for_a_load_and_no_more_than_the_slots(
    edges: list[Running],
) -> None:
    counting = Counting()
    async with upstreams.running(counting.serve) as fake:
        await edges[0].publish(loading())
        requests = [chat(edges[number % 2], "wait=30") for number in range(16)]
        await waiting(edges[0], 8)
        await waiting(edges[1], 8)
        await edges[0].publish(ready(fake, slots=3))
        answers = await asyncio.gather(*requests)
    assert [each.status_code for each in answers] == [200] * 16
    assert counting.most == 3
