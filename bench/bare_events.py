"""The control of `bench.events`: a bare ASGI server of server-sent events, run by uvicorn.

Who asks for /events/ is sent each text that is posted to /, and nothing else is done.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"text/event-stream")],
}
changed = asyncio.Condition()
told: list[bytes] = []

Send = Callable[[Mapping[str, Any]], Awaitable[None]]


async def application(
    scope: Mapping[str, Any], receive: Callable[[], Awaitable[Mapping[str, Any]]], send: Send
) -> None:
    """Stream, or take a text in and wake all."""
    await send(START)
    if scope["path"] == "/events/":
        await _stream(send)
    told.append((await receive()).get("body", b""))
    async with changed:
        changed.notify_all()
    await send({"type": "http.response.body", "body": b""})


async def _stream(send: Send) -> None:
    known = len(told)
    await send({"type": "http.response.body", "body": b":\n\n", "more_body": True})
    while True:
        async with changed:
            while len(told) == known:
                await changed.wait()
        body = b"".join(told[known:])
        known = len(told)
        await send({"type": "http.response.body", "body": body, "more_body": True})
