"""WebSocket handshakes, frames and servers that mean no good, over real sockets."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from gateway.edge import ws_protocol
from gateway.edge.ws_protocol import MOST_FRAGMENTS, MOST_MESSAGE_BYTES
from tests import ws_upstream
from tests.conftest import ValkeyServer
from tests.edge_harness import OWNER, Running, edge_at, key_of, lane, until
from tests.edge_harness import upstream as upstream_at
from tests.ws_client import closed, open_socket, refused, serve
from tests.ws_upstream import FakeSocket
from wire import http_protocol
from wire.http_protocol import MOST_HEAD_BYTES

pytestmark = pytest.mark.valkey
PATH = b"/v1/realtime"
KEY = f"Authorization: Bearer {key_of(OWNER)}\r\n".encode()
OFFER = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
HANDSHAKE = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
GET = b"GET %s HTTP/1.1\r\nHost: x\r\n" % PATH
GOOD = GET + KEY + OFFER + HANDSHAKE + b"\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
TEXT, CONTINUATION, FINAL, PING = 0x01, 0x00, 0x80, 0x09


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url) as running:
        yield running
        await until(lambda: running.in_flight == 0)


@pytest.fixture
async def fake(edge: Running) -> AsyncIterator[FakeSocket]:
    """A model server that reads and says nothing."""
    async with ws_upstream.running(ws_upstream.hears) as server:
        await serve(edge, server)
        yield server
        await until(lambda: not server.open, 2)


@contextlib.asynccontextmanager
async def _connected(
    edge: Running,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    address = urlsplit(edge.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def _head(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(10):
        return await reader.readuntil(b"\r\n\r\n")


async def _all(reader: asyncio.StreamReader) -> bytes:
    """What comes until the edge closes."""
    async with asyncio.timeout(10):
        with contextlib.suppress(ConnectionError):
            return await reader.read()
    return b""


@contextlib.asynccontextmanager
async def _opened(
    edge: Running,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    async with _connected(edge) as (reader, writer):
        writer.write(GOOD)
        assert (await _head(reader)).startswith(b"HTTP/1.1 101")
        yield reader, writer


def _frame(kind: int, data: bytes = b"") -> bytes:
    """One masked frame of at most 125 bytes; its mask is zero."""
    return bytes((kind, 0x80 | len(data))) + bytes(4) + data


async def _close_code(reader: asyncio.StreamReader) -> int:
    """Of the one frame that comes."""
    async with asyncio.timeout(5):
        head = await reader.readexactly(4)
    assert head[0] == 0x88
    return int.from_bytes(head[2:])


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (GET + KEY + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n", b"426"),
        (GET + KEY + b"Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n" + HANDSHAKE, b"426"),
        (GET + KEY + OFFER + b"Upgrade: h2c\r\n" + HANDSHAKE, b"426"),
        (GET + KEY + b"Upgrade: websocket\r\n" + HANDSHAKE, b"426"),
        (GET + KEY + OFFER + b"\r\n", b"426"),
        (GOOD[:-2] + b"Content-Length: 0\r\n", b"426"),
        (GOOD.replace(b"HTTP/1.1", b"HTTP/1.0"), b"426"),
        (GOOD.replace(b"GET", b"POST"), b"405"),
        (GOOD.replace(PATH, b"/v1/models"), b"200"),
        (GOOD.replace(PATH, b"/v1//realtime"), b"404"),
        (GOOD.replace(PATH, b"/v1/%72ealtime"), b"404"),
        (GOOD.replace(b"Version: 13", b"Version: 12"), b"400"),
        (GOOD.replace(b"dGhl", b"!!!!"), b"400"),
        (GOOD[:-2] + HANDSHAKE, b"400"),
        (GOOD[:-2] + b"A: b\r\n" * 200, b"431"),
        (GOOD + HEALTH, b"400"),
        (GOOD.replace(b"GET", b"CONNECT"), b"400"),
    ],
    ids=range(17),
)
async def test_what_is_no_sound_handshake_opens_nothing(
    edge: Running, fake: FakeSocket, sent: bytes, answer: bytes
) -> None:
    async with _connected(edge) as (reader, writer):
        writer.write(sent if sent.endswith(b"\r\n\r\n") else sent + b"\r\n")
        assert (await _head(reader)).startswith(b"HTTP/1.1 " + answer)
    assert fake.requests == []


async def test_an_answer_before_the_handshake_is_followed_by_nothing(
    edge: Running, fake: FakeSocket
) -> None:
    async with _connected(edge) as (reader, writer):
        writer.write(GOOD + HEALTH)
        assert (await _all(reader)).count(b"HTTP/1.1 ") == 1


async def test_who_speaks_before_the_handshake_is_answered_is_cut_off(edge: Running) -> None:
    heard = asyncio.Event()

    async def accepts(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        heard.set()
        assert await reader.read() == b""
        writer.close()

    async with await asyncio.start_server(accepts, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        await edge.publish(lane(upstream=upstream_at(f"http://127.0.0.1:{port}")))
        async with _connected(edge) as (reader, writer):
            writer.write(GOOD)
            await heard.wait()
            writer.write(HEALTH)
            assert await _all(reader) == b""
        await until(lambda: edge.in_flight == 0, 1)


async def test_a_handshake_may_follow_an_answer_but_not_run_ahead_of_it(
    edge: Running, fake: FakeSocket
) -> None:
    async with _connected(edge) as (reader, writer):
        writer.write(HEALTH)
        await _head(reader)
        await reader.readuntil(b"}")
        writer.write(GOOD)
        assert (await _head(reader)).startswith(b"HTTP/1.1 101")
    async with _connected(edge) as (reader, writer):
        writer.write(HEALTH + GOOD)
        await _head(reader)
        await reader.readuntil(b"}")
        assert (await _head(reader)).startswith(b"HTTP/1.1 426")


async def test_the_limits_of_heads_hold_for_handshakes(
    edge: Running, fake: FakeSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _connected(edge) as (reader, writer):
        writer.write(GOOD[:-2] + b"a: " + b"b" * MOST_HEAD_BYTES + b"\r\n\r\n")
        assert (await _head(reader)).startswith(b"HTTP/1.1 431")
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.2)
    async with _connected(edge) as (reader, writer):
        writer.write(GOOD[:-2])
        assert (await _all(reader)).endswith(b"408 Request Timeout")


async def test_a_session_is_not_mistaken_for_a_slow_head(
    edge: Running, fake: FakeSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.05)
    monkeypatch.setattr(http_protocol, "BODY_SECONDS", 0.05)
    async with open_socket(edge) as client:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.recv(), 0.3)


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        (b"\x81\x01a", 1002),
        (_frame(0x83), 1002),
        (_frame(FINAL | CONTINUATION, b"a"), 1002),
        (_frame(FINAL | TEXT, b"\xff"), 1007),
        (b"\x82\xff" + (MOST_MESSAGE_BYTES + 1).to_bytes(8) + bytes(4), 1009),
        (_frame(TEXT, b"a") + _frame(CONTINUATION, b"a") * MOST_FRAGMENTS, 1009),
    ],
    ids=["unmasked", "unknown", "no start", "no text", "too large", "too many pieces"],
)
async def test_bad_frames_end_both_sides(
    edge: Running, fake: FakeSocket, frames: bytes, code: int
) -> None:
    async with _opened(edge) as (reader, writer):
        writer.write(frames)
        assert await _close_code(reader) == code
        await until(lambda: fake.ended == [code], 1)
    assert fake.heard == 0


async def test_a_message_that_is_too_large_ends_the_session(
    edge: Running, fake: FakeSocket
) -> None:
    async with open_socket(edge) as client:
        await client.send(bytes(MOST_MESSAGE_BYTES))
        await until(lambda: fake.heard == MOST_MESSAGE_BYTES)
        with contextlib.suppress(ConnectionClosed):
            await client.send(bytes(MOST_MESSAGE_BYTES + 1))
        assert (await closed(client))[0] == 1009


async def test_a_server_whose_message_is_too_large_is_left(edge: Running) -> None:
    async with ws_upstream.running(ws_upstream.floods) as fake:
        fake.message = bytes(MOST_MESSAGE_BYTES + 1)
        await serve(edge, fake)
        async with open_socket(edge) as client:
            code, reason = await closed(client)
        assert (code, reason.partition(":")[0]) == (1009, "upstream_failed")
        await until(lambda: not fake.open, 2)


async def test_a_client_that_does_not_read_stops_the_server(edge: Running) -> None:
    async with ws_upstream.running(ws_upstream.floods) as fake:
        await serve(edge, fake)
        async with _opened(edge) as (reader, _):
            await _until_still(lambda: fake.sent)
            stopped_at, before = fake.sent, _memory()
            await _until_still(lambda: fake.sent)
            assert fake.sent == stopped_at
            assert stopped_at * len(fake.message) < 24 * 2**20  # what sockets hold, too
            assert _memory() - before < 2**20
            await reader.readexactly(stopped_at * len(fake.message))
            await until(lambda: fake.sent > stopped_at)
        await until(lambda: not fake.open, 2)


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
            await until(lambda: fake.heard == 100 * 2**20, 20)


async def test_a_client_that_does_not_read_its_pongs_takes_no_memory(
    edge: Running, fake: FakeSocket
) -> None:
    async with _opened(edge) as (_, writer):
        pings = _frame(FINAL | PING, b"x" * 125) * 1000
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
        async with _opened(edge):
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
    edge: Running, fake: FakeSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = edge.server.config
    monkeypatch.setattr(config, "ws_ping_interval", 0.1)
    monkeypatch.setattr(config, "ws_ping_timeout", 0.1)
    async with _opened(edge):
        await until(lambda: edge.in_flight == 0, 2)
    await until(lambda: fake.ended == [1001])


async def test_a_late_pong_behind_messages_ends_no_session(
    edge: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = edge.server.config
    monkeypatch.setattr(config, "ws_ping_interval", 0.1)
    monkeypatch.setattr(config, "ws_ping_timeout", 0.1)
    monkeypatch.setattr(ws_protocol, "PONG_SECONDS", 0.1)
    async with ws_upstream.running(ws_upstream.pauses) as fake:
        await serve(edge, fake)
        async with open_socket(edge) as client:
            flood = asyncio.ensure_future(_flood(client, 30))
            await _until_still(client.transport.get_write_buffer_size)
            fake.release.set()
            await flood
            await until(lambda: fake.heard == 30 * 2**20, 20)


async def test_a_redirect_is_not_followed(edge: Running, fake: FakeSocket) -> None:
    async with ws_upstream.running(ws_upstream.hears) as other:
        fake.declines_with, fake.redirects_to = 307, f"{other.url}/v1/realtime"
        assert await refused(edge) == (502, "upstream_failed")
        assert len(fake.requests) == 1
        assert other.requests == []


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
