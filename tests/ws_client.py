"""A client of the edge's WebSockets."""

import asyncio
import contextlib
import json
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from tests.edge_harness import OWNER, Running, bearer, lane
from tests.edge_harness import upstream as upstream_at
from tests.ws_upstream import FakeSocket


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
    async with asyncio.timeout(5):
        with contextlib.suppress(ConnectionClosed):
            while True:
                await client.recv()
    return client.close_code or 0, client.close_reason or ""
