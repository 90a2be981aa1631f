"""WebSocket handshakes, frames and servers that mean no good, over real sockets."""

import asyncio
import contextlib
from typing import Any

import pytest
import uvicorn
from websockets.exceptions import ConnectionClosed

from gateway.edge.ws_protocol import MOST_FRAGMENTS, MOST_MESSAGE_BYTES
from tests import ws_upstream
from tests.bare_client import connected, head_of, rest_of
from tests.edge_harness import Running, lane, until
from tests.edge_harness import upstream as upstream_at
from tests.ws_client import (
    CONTINUATION,
    FINAL,
    GET,
    GOOD,
    HANDSHAKE,
    KEY,
    OFFER,
    PATH,
    TEXT,
    closed,
    frame,
    open_socket,
    opened,
    refused,
    serve,
)
from tests.ws_upstream import FakeSocket
from wire import http_protocol
from wire.http_protocol import MOST_HEAD_BYTES, GuardedProtocol

pytest_plugins = ["tests.edge_fixtures"]
pytestmark = pytest.mark.valkey
HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"


async def _close_code(reader: asyncio.StreamReader) -> int:
    """Of the one frame that comes."""
    async with asyncio.timeout(30):
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
    edge: Running, hearing: FakeSocket, sent: bytes, answer: bytes
) -> None:
    async with connected(edge) as (reader, writer):
        writer.write(sent if sent.endswith(b"\r\n\r\n") else sent + b"\r\n")
        assert (await head_of(reader)).startswith(b"HTTP/1.1 " + answer)
    assert hearing.requests == []


async def test_an_answer_before_the_handshake_is_followed_by_nothing(
    edge: Running, hearing: FakeSocket
) -> None:
    async with connected(edge) as (reader, writer):
        writer.write(GOOD + HEALTH)
        assert (await rest_of(reader)).count(b"HTTP/1.1 ") == 1


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
        async with connected(edge) as (reader, writer):
            writer.write(GOOD)
            await heard.wait()
            writer.write(frame(FINAL | TEXT, b"Hi"))
            assert await rest_of(reader) == b""
        await until(lambda: edge.in_flight == 0)


async def test_a_handshake_may_follow_an_answer_but_not_run_ahead_of_it(
    edge: Running, hearing: FakeSocket
) -> None:
    async with connected(edge) as (reader, writer):
        writer.write(HEALTH)
        await head_of(reader)
        await reader.readuntil(b"}")
        writer.write(GOOD)
        assert (await head_of(reader)).startswith(b"HTTP/1.1 101")
    async with connected(edge) as (reader, writer):
        writer.write(HEALTH + GOOD)
        await head_of(reader)
        await reader.readuntil(b"}")
        assert (await head_of(reader)).startswith(b"HTTP/1.1 426")


async def test_the_limits_of_heads_hold_for_handshakes(
    edge: Running, hearing: FakeSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected(edge) as (reader, writer):
        writer.write(GOOD[:-2] + b"a: " + b"b" * MOST_HEAD_BYTES + b"\r\n\r\n")
        assert (await head_of(reader)).startswith(b"HTTP/1.1 431")
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.2)
    async with connected(edge) as (reader, writer):
        writer.write(GOOD[:-2])
        assert (await rest_of(reader)).endswith(b"408 Request Timeout")


async def test_a_session_is_not_mistaken_for_a_slow_head(
    edge: Running, hearing: FakeSocket, monkeypatch: pytest.MonkeyPatch
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
        (frame(0x83), 1002),
        (frame(FINAL | CONTINUATION, b"a"), 1002),
        (frame(FINAL | TEXT, b"\xff"), 1007),
        (b"\x82\xff" + (MOST_MESSAGE_BYTES + 1).to_bytes(8) + bytes(4), 1009),
        (frame(TEXT, b"a") + frame(CONTINUATION, b"a") * MOST_FRAGMENTS, 1009),
    ],
    ids=["unmasked", "unknown", "no start", "no text", "too large", "too many pieces"],
)
async def test_bad_frames_end_both_sides(
    edge: Running, hearing: FakeSocket, frames: bytes, code: int
) -> None:
    async with opened(edge) as (reader, writer):
        writer.write(frames)
        assert await _close_code(reader) == code
        await until(lambda: hearing.ended == [code])
    assert hearing.heard == 0


async def test_a_message_that_is_too_large_ends_the_session(
    edge: Running, hearing: FakeSocket
) -> None:
    async with open_socket(edge) as client:
        await client.send(bytes(MOST_MESSAGE_BYTES))
        await until(lambda: hearing.heard == MOST_MESSAGE_BYTES)
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
        await until(lambda: not fake.open)


async def test_a_redirect_is_not_followed(edge: Running, hearing: FakeSocket) -> None:
    async with ws_upstream.running(ws_upstream.hears) as other:
        hearing.declines_with, hearing.redirects_to = 307, f"{other.url}/v1/realtime"
        assert await refused(edge) == (502, "upstream_failed")
        assert len(hearing.requests) == 1
        assert other.requests == []


async def test_a_server_without_websockets_answers_every_upgrade_as_a_request() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    config = uvicorn.Config(app, http=GuardedProtocol, lifespan="off", log_config=None)
    config.load()
    state = uvicorn.server.ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: GuardedProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(GOOD)
        assert (await head_of(reader)).startswith(b"HTTP/1.1 204")
        writer.transport.abort()
        await until(lambda: not state.connections)
