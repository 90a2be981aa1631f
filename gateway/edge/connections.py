"""Connections to one model server: pooled by aiohttp, checked before they are used again."""

import asyncio
import select
import socket
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError

LOST_SECONDS = 20  # a link that heals sooner costs running requests nothing
IDLE_SECONDS = 3.0  # llama-server closes an idle connection after five
ON_CONNECTED: ContextVar[Callable[[asyncio.Transport], None]] = ContextVar("on_connected")


def notice_loss(connected: socket.socket) -> None:
    """Let the kernel end a connection whose other machine has not answered for LOST_SECONDS, also
    while nothing is sent: a request must not wait for an hour for a machine that is gone."""
    wishes = {
        "TCP_KEEPIDLE": LOST_SECONDS // 4,
        "TCP_KEEPINTVL": LOST_SECONDS // 4,
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": LOST_SECONDS * 1000,
    }
    if connected.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in wishes.items():
        if hasattr(socket, name):  # other systems have some of them
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class ServerProtocol(ResponseHandler):
    """aiohttp's, which tells too little to who reads a body.

    Of a mistake in a body it tells only who waits for a head; and of a body that ends with the
    connection it says that it is whole when the connection was reset. Beyond that `on_data` hears
    of each packet when it has been parsed, and of the end of the connection; and an unused
    connection can be asked whether something has come.
    """

    on_data: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Be ready to be asked."""
        super().connection_made(transport)
        connected = transport.get_extra_info("socket")
        notice_loss(connected)
        self._poll = select.poll()
        self._poll.register(connected.fileno(), select.POLLIN)

    def connection_lost(self, exc: BaseException | None) -> None:
        """The end; no good one for what it has cut off."""
        body = self._payload
        if exc is not None and body is not None and not body.is_eof():
            body.set_exception(aiohttp.ClientOSError(str(exc)))
        super().connection_lost(exc)
        if self.on_data is not None:
            self.on_data()

    def data_received(self, data: bytes) -> None:
        """Parse it; without data the parser goes on with what it has."""
        super().data_received(data)
        if data and self.on_data is not None:
            self.on_data()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Read on, if reading was paused: aiohttp asks for it with each chunk.

        Else nothing is left in the parser, as long as it does not decompress.
        """
        if self._reading_paused or self._buffer_paused:
            super().resume_reading(resume_parser)

    def has_word(self) -> bool:
        """Whether there is something to read: of an unused one its server has closed it."""
        return bool(self._poll.poll(0))

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        """Nothing more can be read."""
        super().set_exception(exc, *cause)
        if isinstance(exc, HttpProcessingError) and self._payload is not None:
            self._payload.set_exception(exc)


class Unused(NamedTuple):
    """A connection that waits for a request."""

    connection: Connection
    protocol: ServerProtocol
    transport: asyncio.Transport


class ServerConnector(aiohttp.TCPConnector):
    """Gives only connections that nothing is left on; keeps none while draining."""

    def __init__(self) -> None:
        super().__init__(limit=0, keepalive_timeout=IDLE_SECONDS)
        self._factory = partial(ServerProtocol, loop=self._loop)  # type: ignore[assignment]
        self.is_draining = False

    async def connect(self, req: Any, traces: Any, timeout: Any) -> Connection:  # noqa: ASYNC109 (aiohttp's signature)
        """For aiohttp's session, which opens WebSockets: ON_CONNECTED hears before it writes."""
        unused = await self.unused(req, timeout)
        try:
            ON_CONNECTED.get()(unused.transport)
        except BaseException:
            unused.connection.release()
            raise
        return unused.connection

    async def unused(
        self,
        request: aiohttp.ClientRequest,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109
    ) -> Unused:
        """A connection that nothing has been sent on since the last answer.

        Raises ServerDisconnectedError when a new one is closed at once, or its server speaks first.
        """
        while True:
            is_new = not self._conns
            connection = await super().connect(request, [], timeout)
            protocol = connection.protocol
            if isinstance(protocol, ServerProtocol) and not protocol.should_close:
                transport = protocol.transport
                if transport is not None and not (transport.is_closing() or protocol.has_word()):
                    return Unused(connection, protocol, transport)
            connection.close()
            if is_new:
                raise aiohttp.ServerDisconnectedError

    def close_idle(self) -> None:
        """Close the connections that no request uses."""
        for kept in self._conns.values():
            for protocol, _ in kept:
                protocol.close()
        self._conns.clear()

    def _release(self, key: Any, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        super()._release(key, protocol, should_close=should_close or self.is_draining)
