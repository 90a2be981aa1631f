"""WebSockets whose one side reads slowly, or not at all: the other side is held back."""

import asyncio
import os
from collections.abc import Callable

import pytest
from websockets.asyncio.client import ClientConnection

from gateway.edge import ws_protocol
from tests import ws_upstream
from tests.conftest import ValkeyServer
from tests.edge_harness import Running, edge_at, until
from tests.ws_client import FINAL, PING, TEXT, closed, frame, open_socket, opened, serve
from tests.ws_upstream import FakeSocket

pytest_plugins = ["tests.edge_fixtures"]
pytestmark = pytest.mark.valkey


async def test_a_client_that_does_not_read_stops_the_server(edge: Running) -> None:
    async with ws_upstream.running(ws_upstream.floods) as fake:
        await serve(edge, fake)
        async with opened(edge) as (reader, _):
            await _until_still(lambda: fake.sent)
            stopped_at, before = fake.sent, _memory()
            await _until_still(lambda: fake.sent)
            assert fake.sent == stopped_at
            assert stopped_at * len(fake.message) < 24 * 2**20  # what sockets hold, too
            assert _memory() - before < 4 * 2**20
            await reader.readexactly(stopped_at * len(fake.message))
            await until(lambda: fake.sent > stopped_at)
        await until(lambda: not fake.open)


async def test_a_server_that_does_not_read_stops_the_client(edge: Running) -> None:
    async with ws_upstream.running(ws_upstream.pauses) as fake:
        await serve(edge, fake)
        async with open_socket(edge) as client:
            flood = asyncio.ensure_future(_flood(client, 100))
            sent = await _until_still(client.transport.get_write_buffer_size)
            assert sent > 0
            assert not flood.done()
            fake.release.set()
            await flood
            await until(lambda: fake.heard == 100 * 2**20)


async def test_a_client_that_does_not_read_its_pongs_takes_no_memory(
    edge: Running, hearing: FakeSocket
) -> None:
    async with opened(edge) as (_, writer):
        pings = frame(FINAL | PING, b"x" * 125) * 1000
        before = _memory()
        for _ in range(200):
            writer.write(pings)
            await writer.drain()
        assert _memory() - before < 8 * 2**20


async def test_a_client_that_does_not_take_its_messages_is_left(
    valkey_server: ValkeyServer,
) -> None:
    async with (
        edge_at(valkey_server.url, stalled_seconds=0.3) as edge,
        ws_upstream.running(ws_upstream.floods) as fake,
    ):
        await serve(edge, fake)
        async with opened(edge):
            await until(lambda: edge.in_flight == 0)
            await until(lambda: not fake.open)


async def test_a_server_that_does_not_take_its_messages_is_left(
    valkey_server: ValkeyServer,
) -> None:
    async with (
        edge_at(valkey_server.url, stalled_seconds=0.3) as edge,
        ws_upstream.running(ws_upstream.pauses) as fake,
    ):
        await serve(edge, fake)
        async with open_socket(edge) as client:
            flood = asyncio.ensure_future(_flood(client, 100))
            code, reason = await closed(client)
            await asyncio.gather(flood, return_exceptions=True)
        assert (code, reason.partition(":")[0]) == (1011, "upstream_failed")
        fake.release.set()


async def test_a_client_that_has_vanished_is_noticed(
    edge: Running, hearing: FakeSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_often(edge, monkeypatch, 0.1)
    async with opened(edge):
        await until(lambda: edge.in_flight == 0)
    await until(lambda: hearing.ended == [1001])


async def test_who_speaks_is_there_until_nothing_comes_any_more(
    edge: Running, hearing: FakeSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_often(edge, monkeypatch, 0.3)
    monkeypatch.setattr(ws_protocol, "PONG_SECONDS", 0.3)
    loop = asyncio.get_running_loop()
    async with opened(edge) as (_, writer):
        begun, sent = loop.time(), 0
        while loop.time() < begun + 4 * 0.3:  # without a single pong
            writer.write(frame(FINAL | TEXT, b"x"))
            sent += 1
            await until(lambda: hearing.heard == sent)  # noqa: B023
        assert edge.in_flight == 1
        await until(lambda: edge.in_flight == 0)


async def test_a_late_pong_behind_messages_ends_no_session(
    edge: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_often(edge, monkeypatch, 0.1)
    monkeypatch.setattr(ws_protocol, "PONG_SECONDS", 0.1)
    async with ws_upstream.running(ws_upstream.pauses) as fake:
        await serve(edge, fake)
        async with open_socket(edge) as client:
            flood = asyncio.ensure_future(_flood(client, 30))
            await _until_still(client.transport.get_write_buffer_size)
            fake.release.set()
            await flood
            await until(lambda: fake.heard == 30 * 2**20)


def ask_often(edge: Running, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Each client is asked after so long whether it is there, and has as long to say so."""
    for name in ("ws_ping_interval", "ws_ping_timeout"):
        monkeypatch.setattr(edge.server.config, name, seconds)


async def _flood(client: ClientConnection, messages: int) -> None:
    for _ in range(messages):
        await client.send(bytes(2**20))


async def _until_still(count: Callable[[], int]) -> int:
    """Its value when it has not changed for a while."""
    value, same = count(), 0
    async with asyncio.timeout(20):
        while same < 20:
            await asyncio.sleep(0.01)
            before, value = value, count()
            same = same + 1 if value == before else 0
    return value


def _memory() -> int:
    """Of this process, which is edge, client and server in one."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
