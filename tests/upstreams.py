"""Model servers that behave and misbehave, over real sockets.

Each behaviour is a coroutine that gets the request and the connection; it writes what it likes.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

Behaviour = Callable[["Seen", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Seen:
    """One request as the model server got it."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    release: asyncio.Event = field(default_factory=asyncio.Event)  # the server's own

    def header(self, name: str) -> str | None:
        """The first header of this lower-case name."""
        return next((value for each, value in self.headers if each == name), None)


@dataclass
class FakeServer:
    """A model server under test control. `open_connections` tells what the edge holds open."""

    behaviour: Behaviour
    seen: list[Seen] = field(default_factory=list)
    open_connections: int = 0
    accepted: int = 0
    url: str = ""
    closed_by_peer: int = 0
    release: asyncio.Event = field(default_factory=asyncio.Event)  # behaviours may wait for it
    keeps_alive_for: int | None = None  # requests for each connection

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.open_connections += 1
        self.accepted += 1
        served = 0
        try:
            while (seen := await _read_request(reader)) is not None:
                seen.release = self.release
                self.seen.append(seen)
                await self._until_closed(self.behaviour(seen, reader, writer), reader, writer)
                served += 1
                if writer.is_closing() or served == self.keeps_alive_for:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open_connections -= 1
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _until_closed(
        self, work: Awaitable[None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Do the work, but notice at once when the other side closes meanwhile."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=0.005)
                if not task.done() and (reader.at_eof() or reader.exception() is not None):
                    self.closed_by_peer += 1
                    writer.close()
                    return
            task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _read_request(reader: asyncio.StreamReader) -> Seen | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    method, path, _ = first.split(" ")
    headers = [
        (name.lower(), value.strip()) for name, _, value in (x.partition(":") for x in lines)
    ]
    length = int(dict(headers).get("content-length", "0"))
    return Seen(method, path, headers, await reader.readexactly(length))


@contextlib.asynccontextmanager
async def running(behaviour: Behaviour) -> AsyncIterator[FakeServer]:
    """A server with this behaviour on a port of its own."""
    fake = FakeServer(behaviour)
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(fake.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        await asyncio.wait({task})

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    fake.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield fake
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def response(body: bytes, *, status: str = "200 OK", kind: str = "application/json") -> bytes:
    """A whole answer."""
    return (
        f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        + body
    )


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
    b"access-control-allow-origin: https://evil.example\r\nset-cookie: a=b\r\n\r\n"
)
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def chunk(text: bytes) -> bytes:
    """One piece of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(text), text)


def event(content: str | None, **fields: object) -> bytes:
    """One event of a chat stream in llama-server's shape."""
    delta = {"role": "assistant", "content": None} if content is None else {"content": content}
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    data: dict[str, object] = {
        "id": "chat-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
    }
    return b"data: " + json.dumps(data | {"choices": [choice]} | fields).encode() + b"\n\n"


async def llama(seen: Seen, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """llama-server's shapes: chat (streamed or not), completions, embeddings."""
    body = json.loads(seen.body)
    if body.get("stream"):
        writer.write(STREAM_HEAD)
        for piece in (event(None), event("Hello"), event(" there"), event("", usage=USAGE)):
            writer.write(chunk(piece))
        writer.write(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
    elif seen.path.endswith("/embeddings"):
        data = [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}]
        answer: dict[str, object] = {"object": "list", "model": "m", "data": data, "usage": USAGE}
        writer.write(response(json.dumps(answer).encode()))
    else:
        message = {"role": "assistant", "content": "Hello there"}
        choice = {"index": 0, "message": message, "text": "Hello", "finish_reason": "stop"}
        answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
        answer |= {"choices": [choice], "usage": USAGE}
        writer.write(response(json.dumps(answer).encode()))
    await writer.drain()


async def dies_before_headers(
    seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Reads the request and closes."""
    writer.close()


async def dies_in_headers(
    seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Closes in the middle of a header."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-ty")
    await writer.drain()
    writer.close()


async def dies_mid_stream(
    seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """One event, then it is gone without an end."""
    writer.write(STREAM_HEAD + chunk(event("Hello")))
    await writer.drain()
    writer.close()


async def answers_short(
    seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Promises a hundred bytes of JSON and sends two."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n"
    writer.write(head + b'{"')
    await writer.drain()
    writer.close()


async def answers_garbage(
    seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Not HTTP."""
    writer.write(b"\x00\xffwhat is this\r\n\r\n")
    await writer.drain()
    writer.close()


async def refuses_our_key(
    seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """401, as when a server was started with another key."""
    writer.write(response(b'{"error":{"message":"Invalid API Key"}}', status="401 Unauthorized"))
    await writer.drain()


async def is_busy(seen: Seen, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """503 of its own, without a word on when to come again."""
    writer.write(response(b'{"error":"busy"}', status="503 Service Unavailable"))


async def answers_when_released(
    seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """As llama-server, but not before the test lets it."""
    await seen.release.wait()
    await llama(seen, reader, writer)


async def hangs(seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Never answers."""
    await asyncio.Event().wait()


async def streams_for_ever(
    seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """An event every few milliseconds until somebody closes."""
    writer.write(STREAM_HEAD)
    while True:
        writer.write(chunk(event("more")))
        await writer.drain()
        await asyncio.sleep(0.005)


async def first_event_then_hangs(
    seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """One event; the rest never comes."""
    writer.write(STREAM_HEAD + chunk(event("Hello")))
    await writer.drain()
    await asyncio.Event().wait()


async def echoes(seen: Seen, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says what it was asked for, whatever that was."""
    said = json.dumps({"method": seen.method, "path": seen.path, "bytes": len(seen.body)}).encode()
    writer.write(response(said) if seen.method != "HEAD" else response(said)[: -len(said)])
    await writer.drain()


async def connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A bare connection to an http:// address."""
    host, _, port = url.removeprefix("http://").partition(":")
    return await asyncio.open_connection(host, int(port))
