"""How WebSockets end: by the gate, by a limit, by either side; nothing is left of them."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from gateway.edge import ws_session
from gateway.edge.table import LaneRoute
from tests import ws_upstream
from tests.conftest import ValkeyServer
from tests.edge_harness import (
    MEMBER,
    OWNER,
    Running,
    edge_at,
    grant,
    lane,
    tokens,
    until,
)
from tests.edge_harness import upstream as upstream_at
from tests.ws_client import closed, open_socket, refused, serve, until_counted
from tests.ws_upstream import FakeSocket

pytest_plugins = ["tests.edge_fixtures"]
pytestmark = pytest.mark.valkey


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url, drain_seconds=0.3) as running:
        yield running
        await until(lambda: running.in_flight == 0)


def _lane(fake: FakeSocket, **fields: Any) -> LaneRoute:
    return lane(upstream=upstream_at(fake.url), **fields)


def _draining(fake: FakeSocket, seconds: float, **fields: Any) -> LaneRoute:
    until_when = time.time() + seconds
    given = {"generation": 2, "draining": True, "drain_until": until_when, "target": "smol"}
    return _lane(fake, **given | fields)


async def test_a_drain_waits_for_a_session_and_ends_it_at_its_end(
    edge: Running, hearing: FakeSocket
) -> None:
    async with open_socket(edge) as client:
        began = time.monotonic()
        await edge.publish(_draining(hearing, 0.4))
        await until_counted(edge, 2, 1)
        assert await refused(edge) == (503, "model_switching")
        code, reason = await closed(client)
        assert 0.35 < time.monotonic() - began < 30
    assert (code, reason.partition(":")[0]) == (1012, "model_switching")
    await until(lambda: hearing.ended == [1012])
    await until_counted(edge, 2, 0)


async def test_a_reload_ends_a_session_at_once(edge: Running, hearing: FakeSocket) -> None:
    async with open_socket(edge) as client:
        began = time.monotonic()
        await edge.publish(_draining(hearing, 60, cut=True, target="qwen"))
        assert (await closed(client))[0] == 1012
    assert time.monotonic() - began < 30


async def test_anothers_booking_ends_a_session_after_the_drain_time(
    edge: Running, hearing: FakeSocket
) -> None:
    start = time.time() + 0.3
    slot = grant(OWNER, start, start + 60)
    async with open_socket(edge, owner=MEMBER) as client, open_socket(edge) as own:
        await edge.publish(_lane(hearing, grants=(slot,)))
        code, reason = await closed(client)
        assert 0.25 < time.time() - start < 1.5
        assert (code, reason) == (
            1012,
            "model_switching: lane 'main' has been booked by another member.",
        )
        await own.ping()
        assert edge.in_flight == 1
    assert await refused(edge, owner=MEMBER) == (403, "gpu_reserved")


async def test_the_end_of_a_slot_ends_its_session_where_another_begins(
    edge: Running, hearing: FakeSocket
) -> None:
    now = time.time()
    own, next_one = grant(OWNER, now - 1, now + 0.2), grant(MEMBER, now + 0.2, now + 60)
    await edge.publish(_lane(hearing, grants=(own, next_one)))
    async with open_socket(edge) as client:
        assert (await closed(client))[0] == 1012
        assert 0.45 < time.time() - now < 2


async def test_the_end_of_a_slot_ends_its_session_though_the_lane_is_free(
    edge: Running, hearing: FakeSocket
) -> None:
    own = grant(OWNER, 0, time.time() + 0.2)
    await edge.publish(_lane(hearing, grants=(own,)))
    async with open_socket(edge) as client:
        code, reason = await closed(client)
        assert (code, reason) == (1012, "model_switching: your booking of lane 'main' has ended.")
    async with open_socket(edge) as again:
        await again.ping()


async def test_a_slot_that_follows_ones_own_keeps_the_session(
    edge: Running, hearing: FakeSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ws_session, "_LOOK_SECONDS", 0.01)
    now = time.time()
    own = grant(OWNER, 0, now + 0.2), grant(OWNER, now + 0.2, now + 60)
    await edge.publish(_lane(hearing, grants=own))
    async with open_socket(edge) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.8):
                await client.recv()
        await client.ping()


async def test_a_revoked_key_ends_its_session(edge: Running, hearing: FakeSocket) -> None:
    async with open_socket(edge) as client:
        await edge.publish(_lane(hearing), entries={})
        code, reason = await closed(client)
    assert (code, reason.partition(":")[0]) == (1008, "invalid_api_key")


async def test_a_key_that_loses_the_lane_ends_its_session(
    edge: Running, hearing: FakeSocket
) -> None:
    async with open_socket(edge) as client:
        await edge.publish(_lane(hearing), entries=tokens(lanes=("other",)))
        code, reason = await closed(client)
    assert (code, reason.partition(":")[0]) == (1008, "lane_not_found")


async def test_an_edge_that_is_stopped_says_that_it_goes(
    edge: Running, hearing: FakeSocket
) -> None:
    async with open_socket(edge) as client:
        edge.server.should_exit = True
        code, reason = await closed(client)
    assert (code, reason.partition(":")[0]) == (1001, "gateway_stopping")
    assert hearing.ended == [1001]


async def test_a_session_may_end_by_itself_while_the_edge_stops(
    edge: Running, hearing: FakeSocket
) -> None:
    async with open_socket(edge) as client:
        edge.server.should_exit = True
        await until(lambda: edge.edge.is_stopping)
        await client.send("one more")
        await client.close()
    await until(lambda: hearing.ended == [1000])


async def test_a_session_without_messages_ends(valkey_server: ValkeyServer) -> None:
    async with (
        edge_at(valkey_server.url, websocket_idle_seconds=0.2) as edge,
        ws_upstream.running(ws_upstream.hears) as fake,
    ):
        await serve(edge, fake)
        async with open_socket(edge) as client:
            code, reason = await closed(client)
        assert (code, reason.partition(":")[0]) == (1008, "request_timeout")


async def test_a_client_that_leaves_the_queue_leaves_no_place(edge: Running) -> None:
    async with ws_upstream.running(ws_upstream.hears) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url, slots=1)))
        async with open_socket(edge):
            waits = asyncio.ensure_future(open_socket(edge).__aenter__())
            await until(lambda: edge.edge.gate.waiting == {"main": 1})
            waits.cancel()
            await asyncio.gather(waits, return_exceptions=True)
            await until(lambda: not edge.edge.gate.waiting)
            assert edge.in_flight == 1


async def test_a_session_takes_a_slot_and_gives_it_to_who_waits(edge: Running) -> None:
    async with ws_upstream.running(ws_upstream.echoes) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url, slots=1)))
        async with open_socket(edge) as first:
            second = asyncio.ensure_future(open_socket(edge).__aenter__())
            await until(lambda: edge.edge.gate.waiting == {"main": 1})
            await first.close()
            client = await second
            await client.send("Hi")
            assert await client.recv() == "Hi"
            await client.close()


async def test_a_slot_that_begins_while_connecting_is_seen_before_the_first_byte(
    edge: Running, hearing: FakeSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    connecting, go_on = asyncio.Event(), asyncio.Event()
    real = aiohttp.TCPConnector.connect

    async def slowly(self: Any, *arguments: Any) -> Any:
        connecting.set()
        await go_on.wait()
        return await real(self, *arguments)

    monkeypatch.setattr(aiohttp.TCPConnector, "connect", slowly)
    opening = asyncio.ensure_future(refused(edge, owner=MEMBER))
    await connecting.wait()
    assert edge.in_flight == 1  # counted before it connects
    slot = grant(OWNER, time.time() - 0.01, 1e11)
    await edge.publish(_lane(hearing, grants=(slot,)))
    go_on.set()
    assert await opening == (403, "gpu_reserved")
    assert hearing.requests == []
