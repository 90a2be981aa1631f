"""How WebSockets end: by the gate, by a limit, by either side; nothing is left of them."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from gateway.edge.app import EdgeApp
from gateway.edge.table import LaneRoute
from tests import ws_upstream
from tests.conftest import ValkeyServer
from tests.edge_harness import (
    MEMBER,
    OWNER,
    Running,
    edge_at,
    grant,
    key_of,
    lane,
    tokens,
    until,
)
from tests.edge_harness import upstream as upstream_at
from tests.ws_client import closed, open_socket, refused, serve
from tests.ws_upstream import FakeSocket
from wire.edges import USAGE_STREAM, LaneCount
from wire.usage import Usage, decode_usage

pytestmark = pytest.mark.valkey
SCOPE: dict[str, Any] = {
    "type": "websocket",
    "path": "/v1/realtime",
    "raw_path": b"/v1/realtime",
    "query_string": b"",
    "headers": [(b"authorization", f"Bearer {key_of(OWNER)}".encode())],
    "subprotocols": [],
}


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url, drain_seconds=0.3) as running:
        yield running
        await until(lambda: running.in_flight == 0)


@pytest.fixture
async def fake(edge: Running) -> AsyncIterator[FakeSocket]:
    """A model server that reads and says nothing."""
    async with ws_upstream.running(ws_upstream.hears) as server:
        await serve(edge, server)
        yield server
        await until(lambda: not server.open, 1)


def _lane(fake: FakeSocket, **fields: Any) -> LaneRoute:
    return lane(upstream=upstream_at(fake.url), **fields)


def _draining(fake: FakeSocket, seconds: float, **fields: Any) -> LaneRoute:
    until_when = time.time() + seconds
    given = {"generation": 2, "draining": True, "drain_until": until_when, "target": "smol"}
    return _lane(fake, **given | fields)


async def _until_count(edge: Running, generation: int, in_flight: int) -> None:
    async with asyncio.timeout(3):
        while True:
            report = await edge.report()
            if report and report.lanes.get("main") == LaneCount(generation, in_flight):
                return
            await asyncio.sleep(0.005)


async def test_a_drain_waits_for_a_session_and_ends_it_at_its_end(
    edge: Running, fake: FakeSocket
) -> None:
    async with open_socket(edge) as client:
        began = time.monotonic()
        await edge.publish(_draining(fake, 0.4))
        await _until_count(edge, 2, 1)
        assert await refused(edge) == (503, "model_switching")
        code, reason = await closed(client)
        assert 0.35 < time.monotonic() - began < 1.5
    assert (code, reason.partition(":")[0]) == (1012, "model_switching")
    await until(lambda: fake.ended == [1012], 0.5)
    await _until_count(edge, 2, 0)


async def test_a_reload_ends_a_session_at_once(edge: Running, fake: FakeSocket) -> None:
    async with open_socket(edge) as client:
        began = time.monotonic()
        await edge.publish(_draining(fake, 20, cut=True, target="qwen"))
        assert (await closed(client))[0] == 1012
    assert time.monotonic() - began < 1


async def test_anothers_booking_ends_a_session_after_the_drain_time(
    edge: Running, fake: FakeSocket
) -> None:
    start = time.time() + 0.3
    slot = grant(OWNER, start, start + 60)
    async with open_socket(edge, owner=MEMBER) as client, open_socket(edge) as own:
        await edge.publish(_lane(fake, grants=(slot,)))
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
    edge: Running, fake: FakeSocket
) -> None:
    now = time.time()
    own, next_one = grant(OWNER, now - 1, now + 0.2), grant(MEMBER, now + 0.2, now + 60)
    await edge.publish(_lane(fake, grants=(own, next_one)))
    async with open_socket(edge) as client:
        assert (await closed(client))[0] == 1012
        assert 0.45 < time.time() - now < 2


async def test_a_revoked_key_ends_its_session(edge: Running, fake: FakeSocket) -> None:
    async with open_socket(edge) as client:
        await edge.publish(_lane(fake), entries={})
        code, reason = await closed(client)
    assert (code, reason.partition(":")[0]) == (1008, "invalid_api_key")


async def test_a_key_that_loses_the_lane_ends_its_session(edge: Running, fake: FakeSocket) -> None:
    async with open_socket(edge) as client:
        await edge.publish(_lane(fake), entries=tokens(lanes=("other",)))
        code, reason = await closed(client)
    assert (code, reason.partition(":")[0]) == (1008, "lane_not_found")


async def test_an_edge_that_is_stopped_says_that_it_goes(edge: Running, fake: FakeSocket) -> None:
    async with open_socket(edge) as client:
        edge.server.should_exit = True
        code, reason = await closed(client)
    assert (code, reason.partition(":")[0]) == (1001, "gateway_stopping")
    assert fake.ended == [1001]


async def test_a_session_may_end_by_itself_while_the_edge_stops(
    edge: Running, fake: FakeSocket
) -> None:
    async with open_socket(edge) as client:
        edge.server.should_exit = True
        await until(lambda: edge.edge.is_stopping)
        await client.send("one more")
        await client.close()
    await until(lambda: fake.ended == [1000])


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
            await until(lambda: not edge.edge.gate.waiting, 1)
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


async def test_many_sessions_at_once_leave_nothing(edge: Running) -> None:
    async def one(number: int) -> None:
        async with open_socket(edge, owner=OWNER if number % 2 else MEMBER) as client:
            for each in range(20):
                await client.send(f"{number} {each}")
                assert await client.recv() == f"{number} {each}"

    async with ws_upstream.running(ws_upstream.echoes) as fake:
        await serve(edge, fake)
        await asyncio.gather(*map(one, range(100)))
        await until(lambda: edge.in_flight == 0)
        await until(lambda: not fake.open)
        await _until_count(edge, 1, 0)


async def test_a_slot_that_begins_while_connecting_is_seen_before_the_first_byte(
    edge: Running, fake: FakeSocket, monkeypatch: pytest.MonkeyPatch
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
    await edge.publish(_lane(fake, grants=(slot,)))
    go_on.set()
    assert await opening == (403, "gpu_reserved")
    assert fake.requests == []


class Client:
    """A client of the ASGI application that opens a WebSocket, sends once and stays or leaves."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.gone = asyncio.Event()
        self._says = iter(
            ({"type": "websocket.connect"}, {"type": "websocket.receive", "text": "Hi"})
        )

    async def receive(self) -> dict[str, Any]:
        message = next(self._says, None)
        if message is None:
            await self.gone.wait()
            return {"type": "websocket.disconnect", "code": 1005}
        return message

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)
        await asyncio.sleep(0)


@pytest.mark.parametrize("how", ["cancelled by the server", "left by the client"])
@pytest.mark.parametrize("behaviour", [ws_upstream.echoes, ws_upstream.leaves, ws_upstream.floods])
async def test_an_end_at_any_turn_of_the_loop_leaves_nothing(
    edge: Running, behaviour: ws_upstream.Behaviour, how: str
) -> None:
    async with ws_upstream.running(behaviour) as fake:
        await serve(edge, fake)
        app = EdgeApp(edge.edge)
        for turns in range(0, 80, 2):
            client = Client()
            task = asyncio.create_task(app(SCOPE, client.receive, client.send))
            for _ in range(turns):
                await asyncio.sleep(0)
            if how == "left by the client":
                client.gone.set()
            else:
                task.cancel()
            async with asyncio.timeout(5):
                await asyncio.gather(task, return_exceptions=True)
            assert edge.in_flight == 0, turns
        await until(lambda: not fake.open, 5)


async def test_a_session_is_recorded_with_its_bytes_and_never_its_words(
    edge: Running, fake: FakeSocket
) -> None:
    slot = grant(OWNER, 0, 1e11, booking_id=42)
    async with ws_upstream.running(ws_upstream.echoes) as echo:
        await edge.publish(_lane(echo, grants=(slot,)))
        async with open_socket(edge) as client:
            await client.send("é word")
            await client.recv()
    (usage,) = await _records(edge, 1)
    assert (usage.route, usage.status, usage.code) == ("/v1/realtime", 101, "")
    assert (usage.owner_id, usage.lane, usage.booking_id) == (OWNER, "main", 42)
    assert (usage.bytes_in, usage.bytes_out, usage.is_aborted) == (7, 7, False)
    assert usage.first_byte_ms is not None
    assert 0 < usage.first_byte_ms <= usage.duration_ms
    assert usage.completion_tokens is None


async def test_a_session_that_was_ended_or_left_is_recorded_as_that(
    edge: Running, fake: FakeSocket
) -> None:
    async with open_socket(edge, owner=MEMBER) as client:
        client.transport.abort()
        await until(lambda: edge.in_flight == 0)
    async with open_socket(edge) as client:
        await edge.publish(_draining(fake, 20, cut=True))
        await closed(client)
    left, ended = await _records(edge, 2)
    assert (left.owner_id, left.is_aborted, left.code) == (MEMBER, True, "")
    assert (ended.owner_id, ended.is_aborted, ended.code) == (OWNER, False, "model_switching")


async def _records(edge: Running, count: int) -> list[Usage]:
    client = edge.publisher.client
    async with asyncio.timeout(5):
        while await client.xlen(USAGE_STREAM) < count:
            await asyncio.sleep(0.01)
    entries: Any = await client.xrange(USAGE_STREAM)
    found = [decode_usage(fields) for _, fields in entries]
    return [usage for usage in found if usage is not None]
