"""Heads that are endless, slow or offer an upgrade, over real sockets to the edge."""

import contextlib
from collections.abc import AsyncIterator

import pytest

from tests import upstreams
from tests.bare_client import connected, head_of, rest_of
from tests.conftest import ValkeyServer
from tests.edge_harness import OWNER, Running, edge_at, key_of, lane
from tests.edge_harness import upstream as upstream_at
from wire import http_protocol
from wire.http_protocol import MOST_HEAD_BYTES

pytestmark = pytest.mark.valkey
BODY = b'{"model": "qwen", "messages": []}'
CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
KEY = f"Authorization: Bearer {key_of(OWNER)}\r\n".encode()
HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n"
MOST_SENT = 8 * 2**20


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url) as running, upstreams.running(upstreams.llama) as fake:
        await running.publish(lane(upstream=upstream_at(fake.url)))
        yield running


def _chunked(extension: bytes) -> bytes:
    return CHAT + KEY + b"Transfer-Encoding: chunked\r\n\r\n" + extension


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (HEALTH, b"a: b\r\n" * 1000),
        (HEALTH + b"a: ", b"b" * 8000),
        (b"GET /", b"b" * 8000),
        (HEALTH + b"\r\n", b"\r\n" * 4000),
        (_chunked(b"1;"), b"b" * 8000),
        (_chunked(b"0\r\n"), b"a: b\r\n" * 1000),
        (_chunked(b"0\r\na: "), b"b" * 8000),
    ],
    ids=["headers", "value", "url", "line ends", "extension", "trailers", "trailer"],
)
async def test_a_head_without_an_end_is_cut_off(edge: Running, start: bytes, piece: bytes) -> None:
    async with connected(edge) as (_, writer):
        writer.write(start)
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < MOST_SENT:
                writer.write(piece)
                await writer.drain()
                sent += len(piece)
    assert sent < MOST_SENT


async def test_a_head_that_is_too_large_is_a_431_even_in_one_piece(edge: Running) -> None:
    for size, status in ((MOST_HEAD_BYTES - 200, b"200"), (MOST_HEAD_BYTES, b"431")):
        async with connected(edge) as (reader, writer):
            writer.write(HEALTH + b"a: " + b"b" * size + b"\r\n\r\n")
            assert (await head_of(reader)).startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize("pieces", [1, 3])
async def test_a_head_behind_another_request_is_measured_too(edge: Running, pieces: int) -> None:
    large = HEALTH + b"x: " + b"a" * (2 * MOST_HEAD_BYTES) + b"\r\n\r\n"
    data = HEALTH + b"\r\n" + large
    async with connected(edge) as (reader, writer):
        for at in range(0, len(data), len(data) // pieces + 1):
            writer.write(data[at : at + len(data) // pieces + 1])
            await writer.drain()
        answers = await rest_of(reader)
    assert answers.count(b"HTTP/1.1 200") <= 1
    assert b"HTTP/1.1 431" in answers or answers.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("start", [b"", HEALTH, b"\r\n"])
async def test_a_head_that_does_not_come_is_not_waited_for(
    edge: Running, start: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.2)
    async with connected(edge) as (reader, writer):
        writer.write(start)
        assert (await rest_of(reader)).endswith(b"408 Request Timeout")


async def test_a_line_end_behind_an_answer_does_not_hold_the_connection(
    edge: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.2)
    async with connected(edge) as (reader, writer):
        writer.write(HEALTH + b"\r\n")
        await head_of(reader)
        writer.write(b"\r\n")
        assert (await rest_of(reader)).endswith(b"408 Request Timeout")


async def test_a_body_that_does_not_come_is_not_waited_for(
    edge: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "BODY_SECONDS", 0.2)
    async with connected(edge) as (reader, writer):
        writer.write(CHAT + KEY + b"Content-Length: 9\r\n\r\n{")
        assert (await rest_of(reader)).endswith(b"408 Request Timeout")


async def test_a_long_answer_is_not_mistaken_for_a_slow_head(
    edge: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.01)
    assert (await edge.chat()).status_code == 200


@pytest.mark.parametrize("is_split", [True, False])
async def test_an_offered_upgrade_is_declined_and_its_body_kept(
    edge: Running, *, is_split: bool
) -> None:
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n"
    length = b"Content-Length: %d\r\n\r\n" % len(BODY)
    async with connected(edge) as (reader, writer):
        writer.write(CHAT + KEY + offer + length + (b"" if is_split else BODY))
        if is_split:
            await writer.drain()
            writer.write(BODY)
        assert (await head_of(reader)).startswith(b"HTTP/1.1 200")


async def test_a_body_behind_an_upgrade_is_not_another_request(edge: Running) -> None:
    hidden = HEALTH + b"\r\n"
    offer = b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: %d\r\n\r\n" % len(hidden)
    async with connected(edge) as (reader, writer):
        writer.write(CHAT + KEY + offer)
        await writer.drain()
        writer.write(hidden)
        assert (await head_of(reader)).startswith(b"HTTP/1.1 400")
        writer.write(HEALTH + b"Connection: close\r\n\r\n")
        assert (await rest_of(reader)).count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "sent",
    [
        b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: x\r\n\r\n",
        CHAT + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        CHAT + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        CHAT + b"Transfer-Encoding: x-chunked\r\n\r\n0\r\n\r\n",
        CHAT + b"A: b\r\n folded\r\n\r\n",
        CHAT + b"A: b\nB: c\r\n\r\n",
        CHAT + b"A: b\0\r\n\r\n",
        b"GET http://evil.example HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
    ],
)
async def test_what_two_servers_could_read_differently_is_refused(
    edge: Running, sent: bytes
) -> None:
    async with connected(edge) as (reader, writer):
        writer.write(sent)
        assert (await rest_of(reader)).startswith(b"HTTP/1.1 400")
