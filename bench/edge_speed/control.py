"""The control: a bare ASGI function that forwards with aiohttp's client, and does nothing else.

`python -m bench.edge_speed.control PORT UPSTREAM_URL`: under uvicorn with the edge's flags, but
uvicorn's own HTTP protocol. No token, no route, no count; a large body is passed on as it comes.
"""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import uvicorn
from yarl import URL

Message = dict[str, Any]
_AT_ONCE_BYTES = 262_144
_NOT_PASSED = (b"host", b"connection", b"transfer-encoding", b"authorization")


class Control:
    """One session to one upstream."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.session: aiohttp.ClientSession | None = None

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Forward one request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        assert self.session is not None
        headers = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in scope["headers"]
            if name not in _NOT_PASSED
        ]
        url = URL(self.upstream + scope["path"], encoded=True)
        data = await _body(scope, receive)
        async with self.session.request(scope["method"], url, data=data, headers=headers) as answer:
            passed = [
                (name.lower(), value)
                for name, value in answer.raw_headers
                if name.lower() != b"transfer-encoding"
            ]
            await send({"type": "http.response.start", "status": answer.status, "headers": passed})
            async for chunk in answer.content.iter_any():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _live(
        self,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        await receive()
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), auto_decompress=False
        ) as self.session:
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})


async def _body(
    scope: Message, receive: Callable[[], Awaitable[Message]]
) -> bytes | AsyncIterator[bytes]:
    length = int(dict(scope["headers"]).get(b"content-length", b"0"))
    if length > _AT_ONCE_BYTES:
        return _pieces(receive)
    return b"".join([piece async for piece in _pieces(receive)])


async def _pieces(receive: Callable[[], Awaitable[Message]]) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return


if __name__ == "__main__":
    uvicorn.run(
        Control(sys.argv[2]),
        port=int(sys.argv[1]),
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
    )
