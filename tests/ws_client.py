"""A client of the edge's WebSockets."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from tests.bare_client import connected, head_of
from tests.edge_harness import OWNER, Running, bearer, key_of, lane
from tests.edge_harness import upstream as upstream_at
from tests.ws_upstream import FakeSocket
from wire.edges import LaneCount

PATH = b"/v1/realtime"
KEY = f"Authorization: Bearer {key_of(OWNER)}\r\n".encode()
OFFER = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
HANDSHAKE = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
GET = b"GET %s HTTP/1.1\r\nHost: x\r\n" % PATH
GOOD = GET + KEY + OFFER + HANDSHAKE + b"\r\n"
TEXT, CONTINUATION, FINAL, PING = 0x01, 0x00, 0x80, 0x09


async def serve(edge: Running, fake: FakeSocket, **fields: Any) -> None:
    """A lane whose model server this is."""
    await edge.publish(lane(upstream=upstream_at(fake.url), **fields))


def open_socket(
    edge: Running,
    path: str = "/v1/realtime?model=qwen",
    *,
    owner: int | None = OWNER,
    headers: dict[str, str] | None = None,
    protocols: tuple[str, ...] = (),
    **options: Any,
) -> connect:
    """A client's WebSocket to the edge."""
    shown = (bearer(owner) if owner is not None else {}) | (headers or {})
    return connect(
        edge.url.replace("http", "ws", 1) + path,
        additional_headers=shown,
        subprotocols=[Subprotocol(each) for each in protocols] or None,
        compression=None,
        max_size=None,
        **options,
    )


async def refused(edge: Running, path: str = "/v1/realtime", **options: Any) -> tuple[int, str]:
    """Status and code of the HTTP answer in place of a handshake."""
    with pytest.raises(InvalidStatus) as caught:
        async with open_socket(edge, path, **options):
            pass
    body = caught.value.response.body
    assert caught.value.response.headers["content-type"] == "application/json"
    code = json.loads(body or b"")["error"]["code"]
    return caught.value.response.status_code, code


async def closed(client: ClientConnection) -> tuple[int, str]:
    """Code and reason of the close that ends this session."""
    async with asyncio.timeout(30):
        with contextlib.suppress(ConnectionClosed):
            while True:
                await client.recv()
    return client.close_code or 0, client.close_reason or ""


@contextlib.asynccontextmanager
async def opened(
    edge: Running,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A bare connection behind a handshake."""
    async with connected(edge) as (reader, writer):
        writer.write(GOOD)
        assert (await head_of(reader)).startswith(b"HTTP/1.1 101")
        yield reader, writer


def frame(kind: int, data: bytes = b"") -> bytes:
    """One masked frame of at most 125 bytes; its mask is zero."""
    return bytes((kind, 0x80 | len(data))) + bytes(4) + data


async def until_counted(edge: Running, generation: int, in_flight: int) -> None:
    """Wait until the hosts read this of the edge."""
    async with asyncio.timeout(30):
        while True:
            report = await edge.report()
            if report and report.lanes.get("main") == LaneCount(generation, in_flight):
                return
            await asyncio.sleep(0.005)
