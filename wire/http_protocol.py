"""uvicorn's HTTP/1.1 with what httptools leaves open: limits to a request's head, and upgrades.

httptools reads a head of any size for any time, so that a stranger could fill the memory or hold
all connections. And it drops the body of a request that offers an upgrade, as Java's HTTP client
does with each first one: what follows would be read as another request.

A server that stops would close connections at once whose next request is on its way: they linger.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wire.http_answers import AnswerLine
from wire.http_unframed import UnframedCycle

CONNECTION = "slotserve.connection"  # in a scope's extensions: its GuardedProtocol
MOST_HEAD_BYTES = 65_536  # a packet more, of a head that is not complete yet
HEAD_SECONDS = 30.0
BODY_SECONDS = 150.0  # more than the edge's own limit, which answers in the caller's dialect
MOST_AHEAD = 4  # requests behind one that is being answered; then no more packets are read
LINGER_SECONDS = 1.0  # for a request that was sent before its client could know of the stop
_WITHOUT_CHUNKS = frozenset({"0.9", "1.0"})
_UPGRADE = frozenset({b"upgrade", b"http2-settings"})
_HANDSHAKE = frozenset({b"host", b"sec-websocket-key", b"sec-websocket-version"})
_BODY = frozenset({b"content-length", b"transfer-encoding"})
_TOO_LARGE = "431 Request Header Fields Too Large"
_TOO_SLOW = "408 Request Timeout"
_BAD = "400 Bad Request"


class HeadTooLargeError(Exception):
    """Raised inside the parser, which then stops."""


class GuardedProtocol(HttpToolsProtocol):
    """One connection. A request starts when its head is complete, in time and not too large."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_in_head = True
        self._unused_bytes = 0  # since the last head or piece of a body
        self._waiting: asyncio.TimerHandle | None = None
        self._is_upgrade = False
        self._is_stopping = False
        self._when_gone: Callable[[], None] | None = None
        self._when_stopping: Callable[[], None] | None = None

    def when_gone(self, callback: Callable[[], None] | None) -> None:
        """Call this when the client leaves; None when nobody needs to know any more.

        ASGI tells of it only to who waits in `receive`: a task of its own for each request.
        """
        self._when_gone = callback
        if callback is not None:
            self.flow.resume_reading()  # what is not read from is not heard to be closed
            if self.transport.is_closing():
                self.loop.call_soon(callback)

    def when_stopping(self, callback: Callable[[], None] | None) -> None:
        """Call this when the server stops; None when nobody needs to know any more.

        For answers that have no end of their own, and would be waited for.
        """
        self._when_stopping = callback
        if callback is not None and self._is_stopping:
            self.loop.call_soon(callback)

    def has_whole(self, scope: Any) -> bool:
        """Whether all of this request's body has come."""
        return self.cycle.scope is scope and not self.cycle.more_body

    def line_of(self, scope: Any) -> AnswerLine | None:
        """What its answer may be written to; None while the client has asked for more already."""
        cycle = self.cycle
        return AnswerLine(cycle, self.transport, self.flow) if cycle.scope is scope else None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """From now on a head is waited for."""
        super().connection_made(transport)
        self._wait(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._stop_waiting()
        super().connection_lost(exc)
        if self._when_gone is not None:
            self._when_gone()

    def data_received(self, data: bytes) -> None:
        """Parse it. The rest of a head or body that has begun must come in time."""
        self._unset_keepalive_if_required()
        self._unused_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._take_upgrade(data[upgrade.args[0] :])
            return  # a session has no head to wait for
        except httptools.HttpParserError as error:
            is_too_large = isinstance(error.__context__, HeadTooLargeError)
            self._refuse(_TOO_LARGE if is_too_large else _BAD)
        if self._unused_bytes > MOST_HEAD_BYTES:
            self._refuse(_TOO_LARGE)
        if not self._is_in_head:
            self._wait(BODY_SECONDS)
        elif not self._is_upgrade and not self._is_answering():
            self._wait(HEAD_SECONDS)

    def on_headers_complete(self) -> None:
        """Start the request, unless its head is too large or must be read without its upgrade."""
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > MOST_HEAD_BYTES:
            raise HeadTooLargeError
        self._is_upgrade = self.parser.should_upgrade()
        if not self._is_upgrade:
            self._is_in_head, self._unused_bytes = False, 0
            self._stop_waiting()
            super().on_headers_complete()
            self.headers = []  # those behind a chunked body come too late; the scope has its own
            self.scope["extensions"] = {CONNECTION: self}  # type: ignore[dict-item]
            if self.scope["http_version"] in _WITHOUT_CHUNKS:
                UnframedCycle.take_over(self.cycle)
            if self._is_stopping:
                self.cycle.keep_alive = False
            if self._when_gone is not None and len(self.pipeline) < MOST_AHEAD:
                self.flow.resume_reading()

    def on_body(self, body: bytes) -> None:
        """Pass it on."""
        self._unused_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The next bytes begin another head."""
        if not self._is_upgrade:
            self._is_in_head = True
            self._stop_waiting()
            super().on_message_complete()

    def shutdown(self) -> None:
        """Say `Connection: close` with the next answer, and wait a moment for its request.

        An answer that has begun without saying so must not end its connection: the client may
        send another request right behind it.
        """
        self._is_stopping = True
        if self._when_stopping is not None:
            self._when_stopping()
        self.timeout_keep_alive = self._linger()  # type: ignore[assignment]
        if not self._is_answering():
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        elif not self.cycle.response_started:
            self.cycle.keep_alive = False

    def takes_websocket(self, path: bytes) -> bool:
        """Whether a WebSocket may be opened at this path."""
        return False

    def _take_upgrade(self, rest: bytes) -> None:
        """Hand a good WebSocket handshake over; whatever else is offered is declined."""
        if not self._is_websocket():
            self._read_without_upgrade(rest)
        elif rest:  # who speaks before the answer may hide a request in it
            self._refuse(_BAD)
        else:
            self._stop_waiting()
            self.scope["method"] = "GET"
            self.handle_websocket_upgrade()

    def _is_websocket(self) -> bool:
        """A whole handshake without a body, at a path for it, with no answer still to come."""
        offered = [value.lower() for name, value in self.headers if name == b"upgrade"]
        named = {name for name, _ in self.headers}
        return (
            self.ws_protocol_class is not None
            and offered == [b"websocket"]
            and self.parser.get_method() == b"GET"
            and self.parser.get_http_version() == "1.1"
            and self.url.isascii()
            and named >= _HANDSHAKE
            and not named & _BODY
            and not self._is_answering()
            and self.takes_websocket(self.url.partition(b"?")[0])
        )

    def _read_without_upgrade(self, rest: bytes) -> None:
        """Read the same request again as if it had not offered an upgrade: a server may do so."""
        method = self.parser.get_method()
        if method == b"CONNECT":
            self._refuse(_BAD)
            return
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (method, self.url, version)]
        lines += [b"%s: %s" % header for header in self.headers if header[0] not in _UPGRADE]
        self.parser = httptools.HttpRequestParser(self)
        self._unused_bytes = 0
        self.data_received(b"\r\n".join(lines) + b"\r\n\r\n" + rest)

    def _linger(self) -> float:
        """Less than what the whole stop may take."""
        most = self.config.timeout_graceful_shutdown
        return LINGER_SECONDS if most is None else min(LINGER_SECONDS, most / 2)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self, seconds: float) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not (self._is_answering() and self.cycle.response_started):
            self._refuse(_TOO_SLOW)

    def _refuse(self, status: str) -> None:
        """Answer in plain text, unless some of an answer is out, and close."""
        if self.transport.is_closing():
            return
        if not (self._is_answering() and self.cycle.response_started):
            head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\n"
            head += f"content-length: {len(status)}\r\nconnection: close\r\n\r\n"
            self.transport.write(f"{head}{status}".encode())
        self.transport.close()
