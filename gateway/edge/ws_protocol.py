"""uvicorn's WebSockets with what it leaves open: who may open one, and limits to what comes.

The sans-I/O implementation answers refusals before the handshake in HTTP and stops reading while
a message waits, as wsproto's does not. It lets a client speak before the handshake is answered,
cut a message into endless pieces and never read its pongs.
"""

import asyncio
import logging
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from gateway.edge.routes import Kind, match
from wire.http_protocol import GuardedProtocol

MOST_MESSAGE_BYTES = 16 * 2**20
MOST_FRAGMENTS = 4096  # of one message
PING_SECONDS = 20.0
PONG_SECONDS = 60.0  # a client that reads slowly answers late
CLOSE_SECONDS = 2.0  # for a client to take the last word and answer it
_BAD = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_BIG = 1009
_quiet = logging.getLogger("gateway.edge.websockets")
_quiet.setLevel(logging.WARNING)  # uvicorn tells of each handshake, with its query


class EdgeProtocol(GuardedProtocol):
    """HTTP/1.1 whose WebSocket routes may become WebSockets."""

    def takes_websocket(self, path: bytes) -> bool:
        """Whether a WebSocket may be opened at this path."""
        matched = match(path)
        return matched is not None and matched.route.kind is Kind.WEBSOCKET


class EdgeWebSocket(WebSocketsSansIOProtocol):
    """One WebSocket of a client. The gate ends it when the edge stops, not uvicorn."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = self.conn.logger = _quiet
        self.close_timeout = CLOSE_SECONDS
        self._lingering: asyncio.TimerHandle | None = None
        self._has_spoken = False  # since it was last asked whether it is there

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        if self._lingering is not None:
            self._lingering.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Leave a session to the gate; what is only waiting for its end goes now."""
        if self.close_sent or not self.handshake_initiated:
            super().shutdown()

    def data_received(self, data: bytes) -> None:
        """Parse it. Nothing may come before the handshake is answered."""
        if self.handshake_initiated and not self.handshake_complete:
            self.transport.abort()
            return
        self._has_spoken = True
        super().data_received(data)
        if not self.handshake_initiated:  # uvicorn forgets heads that its parser refuses
            self.transport.write(b"".join(self.conn.data_to_send()) or _BAD)
            self.transport.close()

    def handle_ping(self) -> None:
        """Answer, unless earlier answers wait to be read: only the newest ping needs one."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def send_keepalive_ping(self) -> None:
        """Ask whether it is there: it is if it answers, or says anything else."""
        self._has_spoken = False
        super().send_keepalive_ping()

    def keepalive_timeout(self) -> None:
        """End it, unless something came, or its pong may still be behind messages that wait for the
        other side."""
        if self._has_spoken or self.read_paused or not self.writable.is_set():
            self._has_spoken = False
            self.pong_timer = self.loop.call_later(PONG_SECONDS, self.keepalive_timeout)
        else:
            super().keepalive_timeout()

    def handle_cont(self, event: Frame) -> None:
        """Take a piece of a message, up to a number of pieces."""
        if len(self.frames) < MOST_FRAGMENTS:
            super().handle_cont(event)
        elif not self.close_sent:
            self.conn.fail(_TOO_BIG, "too many fragments")
            self.handle_parser_exception()

    def on_task_complete(self, task: "asyncio.Task[None]") -> None:
        """The session is over: a client that does not read the end of it is not waited for."""
        super().on_task_complete(task)
        if not self.disconnected:
            self._lingering = self.loop.call_later(2 * CLOSE_SECONDS, self.transport.abort)
