"""One answer to one client: what has been sent of it, and how it may still end."""

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from gateway.edge.answer_headers import refusal_headers
from gateway.edge.dialects import Dialect, error_body, error_event
from gateway.edge.headers import Headers
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routing import Route
from gateway.edge.tail import NoTail, StreamTail, Tail, tail_for
from wire.http_answers import AnswerLine

Send = Callable[[dict[str, Any]], Awaitable[None]]
JSON = (b"content-type", b"application/json")
EVENTS = (b"content-type", b"text/event-stream")
_CLOSE = (b"connection", b"close")


class Answer:
    """Sends head, chunks and end, and knows how far it has come."""

    def __init__(
        self,
        send: Send,
        dialect: Dialect,
        request_id: str,
        more: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        self.dialect = dialect
        self.status: int | None = None  # once the head is out
        self.refusal: EdgeRefusal | None = None
        self.bytes_out = 0
        self.first_byte_at: float | None = None  # monotonic
        self.tail: Tail = NoTail()  # until the head tells what comes
        self._send = send
        self.notes: Callable[[Route], Headers] = _no_notes  # on where it ran
        self.line: AnswerLine | None = None  # to write past ASGI
        self._own: Headers = [
            (b"x-request-id", request_id.encode()),
            (b"x-accel-buffering", b"no"),
            *more,
        ]
        if dialect is Dialect.ANTHROPIC:
            self._own.append((b"request-id", request_id.encode()))
        self.is_finished = False
        self._is_stream = False
        self._is_early = False

    @property
    def has_started(self) -> bool:
        """Whether the head is out."""
        return self.status is not None

    def add(self, header: tuple[bytes, bytes]) -> None:
        """A header of our own for the head."""
        self._own.append(header)

    async def start(self, status: int, headers: Headers, *, has_body_now: bool = False) -> None:
        """Send the head, unless comments have gone out: then a stream goes on under theirs.

        With `has_body_now` a chunk is written next, without waiting: both go out together.
        """
        if self._is_early:
            return
        if has_body_now and self.line is not None:
            self.line.hold_head()
        self.tail = tail_for(headers)
        self._is_stream = isinstance(self.tail, StreamTail)
        await self._send(
            {"type": "http.response.start", "status": status, "headers": [*headers, *self._own]}
        )
        self.status = status

    async def write(self, chunk: bytes, *, is_last: bool = False) -> None:
        """Send a chunk; waits while the client is slow to read."""
        await self._send({"type": "http.response.body", "body": chunk, "more_body": not is_last})
        self.is_finished = is_last
        self._count(chunk)

    def takes_chunks(self) -> bool:
        """Whether `write_chunk` may be called now: of an event stream whose client reads."""
        return self._is_stream and self.line is not None and self.line.takes_chunks()

    def write_chunk(self, chunk: bytes) -> None:
        """Send a chunk at once, past ASGI."""
        if self.line is None:
            raise RuntimeError("takes_chunks says when this can be called")
        self.line.write_chunk(chunk)
        self._count(chunk)

    async def comment(self, text: str) -> None:
        """Begin an event stream, if that has not been done, with a comment: no byte of an answer.

        Cut short, it has sent a whole comment or none.
        """
        if not self.has_started:
            await self.start(200, [EVENTS, (b"cache-control", b"no-store")])
            self._is_early = True
        chunk = b": %s\n\n" % text.encode()
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
        self.bytes_out += len(chunk)

    async def finish(self, body: bytes = b"") -> None:
        """Send the end."""
        self.bytes_out += len(body)
        await self._send({"type": "http.response.body", "body": body, "more_body": False})
        self.is_finished = True

    async def switch(self, protocol: str | None, headers: Headers) -> None:
        """Open a WebSocket in place of an answer."""
        headers = [*headers, *self._own]
        await self._send({"type": "websocket.accept", "subprotocol": protocol, "headers": headers})
        self.status = 101

    async def send_message(self, message: dict[str, Any], size: int) -> None:
        """Send a message of a WebSocket; waits while the client is slow to read."""
        await self._send(message)
        if self.first_byte_at is None:
            self.first_byte_at = time.monotonic()
        self.bytes_out += size

    async def close_socket(self, code: int, reason: str) -> None:
        """Send the end of a WebSocket."""
        await self._send({"type": "websocket.close", "code": code, "reason": reason})

    async def send_json(self, status: int, body: bytes, headers: Headers | None = None) -> None:
        """A whole answer of our own."""
        length = (b"content-length", str(len(body)).encode())
        await self.start(status, [JSON, length, *(headers or [])])
        await self.finish(body)

    async def refuse(self, refusal: EdgeRefusal) -> None:
        """The refusal in the route's dialect, whole."""
        await self._start_refusal(refusal, [])
        await self.finish(error_body(self.dialect, refusal))

    async def refuse_early(self, refusal: EdgeRefusal) -> None:
        """The refusal while the request is still arriving. `finish` then closes the connection."""
        await self._start_refusal(refusal, [_CLOSE])
        await self.write(error_body(self.dialect, refusal))

    async def fail(self, refusal: EdgeRefusal) -> None:
        """End what may be half sent: a refusal, an event in the stream, or a cut.

        A cut is an answer that never ends: the server then closes the connection, so that no
        client takes half an answer for a whole one.
        """
        if not self.has_started:
            await self.refuse(refusal)
            return
        self.refusal = refusal
        if self._is_stream:
            gap = b"" if self.tail.ends_event() else b"\n\n"
            await self.finish(gap + error_event(self.dialect, refusal))

    def _count(self, chunk: bytes) -> None:
        if self.first_byte_at is None:
            self.first_byte_at = time.monotonic()
        self.bytes_out += len(chunk)
        self.tail.add(chunk)

    async def _start_refusal(self, refusal: EdgeRefusal, headers: Headers) -> None:
        self.refusal = refusal
        length = len(error_body(self.dialect, refusal))
        headers = [*headers, JSON, (b"content-length", str(length).encode())]
        await self.start(refusal.status, [*headers, *refusal_headers(refusal)])


def _no_notes(_: Route) -> Headers:
    return []
