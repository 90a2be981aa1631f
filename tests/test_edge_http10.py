"""Clients of HTTP/1.0 know no chunks: a body of unknown length ends with the connection."""

from collections.abc import AsyncIterator

import pytest

from tests import upstreams
from tests.bare_client import connected, head_of, rest_of
from tests.conftest import ValkeyServer
from tests.edge_harness import OWNER, Running, edge_at, key_of, lane
from tests.edge_harness import upstream as upstream_at

pytestmark = pytest.mark.valkey
KEY = f"x-api-key: {key_of(OWNER)}\r\n"


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url) as running, upstreams.running(upstreams.llama) as fake:
        await running.publish(lane(upstream=upstream_at(fake.url)))
        yield running


async def asked(edge: Running, version: str, body: bytes, more: str = "") -> tuple[bytes, bytes]:
    """Head and body of the answer to a chat request of this version."""
    head = f"POST /v1/chat/completions HTTP/{version}\r\nHost: x\r\nConnection: close\r\n{KEY}"
    async with connected(edge) as (reader, writer):
        writer.write(f"{head}Content-Length: {len(body)}\r\n{more}\r\n".encode() + body)
        return (await head_of(reader)).lower(), await rest_of(reader)


async def test_a_stream_has_no_chunks_and_ends_with_the_connection(edge: Running) -> None:
    head, body = await asked(edge, "1.0", b'{"messages": [], "stream": true}')
    assert b" 200 " in head
    assert b"transfer-encoding" not in head
    assert b"connection: close" in head
    assert body.startswith(b"data: ")
    assert body.endswith(b"data: [DONE]\n\n")


async def test_a_stream_is_in_chunks_for_a_client_that_knows_them(edge: Running) -> None:
    head, body = await asked(edge, "1.1", b'{"messages": [], "stream": true}')
    assert b"transfer-encoding: chunked" in head
    assert body.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("body", [b'{"messages": []}', b"{}", b"["])
async def test_an_answer_of_known_length_tells_it(edge: Running, body: bytes) -> None:
    head, answer = await asked(edge, "1.0", body)
    assert f"content-length: {len(answer)}\r\n".encode() in head
    assert b"connection: close" in head
    assert answer.startswith(b"{")


async def test_an_expectation_of_100_continue_is_ignored(edge: Running) -> None:
    head, _ = await asked(edge, "1.0", b'{"messages": []}', "Expect: 100-continue\r\n")
    assert head.startswith(b"http/1.1 200 ")


async def test_keep_alive_is_not_granted(edge: Running) -> None:
    async with connected(edge) as (reader, writer):
        writer.write(b"GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert b"connection: close" in (await head_of(reader)).lower()
        assert await rest_of(reader) == b'{"status":"ok"}'


async def test_a_head_request_has_no_body(edge: Running) -> None:
    async with connected(edge) as (reader, writer):
        writer.write(f"HEAD /v1/models HTTP/1.0\r\n{KEY}\r\n".encode())
        assert b"connection: close" in (await head_of(reader)).lower()
        assert await rest_of(reader) == b""
