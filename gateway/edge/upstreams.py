"""Connections to model servers: one pool for each generation of each lane's server."""

import asyncio
import re
import select
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.connector import Connection
from yarl import URL

from gateway.edge.headers import Headers, upstream_headers
from gateway.edge.table import LaneRoute, Upstream
from wire.sealing import Sealer

if TYPE_CHECKING:
    from asyncio import Transport

    from aiohttp.client_proto import ResponseHandler

IDLE_SECONDS = 3.0  # llama-server closes an idle connection after five
ON_CONNECTED: ContextVar[Callable[["Transport"], None]] = ContextVar("on_connected")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class NotSentError(Exception):
    """The model server could not be reached; it has not seen a byte."""


class ServerConnector(aiohttp.TCPConnector):
    """Gives only connections that nothing is left on; keeps none while draining."""

    def __init__(self) -> None:
        super().__init__(limit=0, keepalive_timeout=IDLE_SECONDS)
        self.is_draining = False

    async def connect(self, req: Any, traces: Any, timeout: Any) -> Connection:  # noqa: ASYNC109 (aiohttp's signature)
        """For aiohttp's session, which opens WebSockets: ON_CONNECTED hears before it writes."""
        connection, transport = await self.unused(req, timeout)
        try:
            ON_CONNECTED.get()(transport)
        except BaseException:
            connection.release()
            raise
        return connection

    async def unused(
        self,
        request: aiohttp.ClientRequest,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109
    ) -> "tuple[Connection, Transport]":
        """A connection that nothing has been sent on since the last answer."""
        while True:
            connection = await super().connect(request, [], timeout)
            protocol = connection.protocol
            if protocol is not None and not protocol.should_close:
                transport = protocol.transport
                if transport is not None and not _has_word(transport):
                    return connection, transport
            connection.close()

    def close_idle(self) -> None:
        """Close the connections that no request uses."""
        for kept in self._conns.values():
            for protocol, _ in kept:
                protocol.close()
        self._conns.clear()

    def _release(
        self, key: Any, protocol: "ResponseHandler", *, should_close: bool = False
    ) -> None:
        super()._release(key, protocol, should_close=should_close or self.is_draining)


def _has_word(transport: "Transport") -> bool:
    """Whether an unused connection has something to read: then the server has closed it."""
    sock = transport.get_extra_info("socket")
    if transport.is_closing() or sock is None:
        return True
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    return bool(poll.poll(0))


class Server:
    """One model server as the edge calls it."""

    def __init__(self, upstream: Upstream, key: str, timeout: aiohttp.ClientTimeout) -> None:
        self.upstream = upstream
        self.key = key
        self.connector = ServerConnector()
        self.session = aiohttp.ClientSession(  # for WebSockets
            connector=self.connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()
        )
        self.users = 0
        self.silent_seconds = timeout.sock_read or 3600.0  # may pass without a byte either way
        self._timeout = timeout
        base = URL(upstream.base_url, encoded=True)
        self._place = aiohttp.ClientRequest("GET", base, loop=asyncio.get_running_loop())
        self._prefix = base.raw_path.rstrip("/")
        self._host = b"host: %b\r\n" % (base.host_port_subcomponent or "").encode("ascii")

    async def connect(self) -> "tuple[Connection, Transport]":
        """A connection that nobody uses; NotSentError when there is none to be had."""
        try:
            return await self.connector.unused(self._place, self._timeout)
        except (aiohttp.ClientConnectorError, TimeoutError) as error:
            raise NotSentError(type(error).__name__) from error

    def head(self, method: str, target: str, headers: Headers, length: int | None) -> bytes:
        """What is written before the body: path and query untouched, the caller's own headers."""
        lines = [
            f"{method} {self._prefix}{target} HTTP/1.1\r\n".encode("latin-1"),
            self._host,
            *[b"%b: %b\r\n" % header for header in upstream_headers(headers, self.key)],
            b"\r\n" if length is None else b"content-length: %d\r\n\r\n" % length,
        ]
        return b"".join(lines)


class ServerPool:
    """The model servers in use. Those that left the table close at the next one that finds them
    without a request; their connections close with the request."""

    def __init__(self, sealer: Sealer, *, connect_seconds: float, answer_seconds: float) -> None:
        self._sealer = sealer
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=connect_seconds, sock_read=answer_seconds
        )
        self._servers: dict[tuple[str, Upstream], Server] = {}
        self._latest: dict[str, Server] = {}  # by lane: to compare is quicker than to hash

    def server(self, slug: str, upstream: Upstream) -> Server | None:
        """The server of a lane; None when its key cannot be opened with our keys."""
        latest = self._latest.get(slug)
        if latest is not None and latest.upstream is upstream:
            return latest
        server = self._servers.get((slug, upstream))
        if server is None:
            key = self._sealer.open(upstream.sealed_key)
            if key is None or _CONTROL.search(key):
                return None
            server = self._servers[slug, upstream] = Server(upstream, key, self._timeout)
        server.upstream = upstream  # an equal one, of the newest table
        self._latest[slug] = server
        return server

    async def follow(self, lanes: Iterable[LaneRoute]) -> None:
        """Close idle connections of draining servers, and all of those that are gone."""
        held = {lane.slug: lane for lane in lanes}
        for (slug, upstream), server in list(self._servers.items()):
            lane = held.get(slug)
            is_held = lane is not None and lane.upstream == upstream
            server.connector.is_draining = not is_held or (lane is not None and lane.draining)
            if server.connector.is_draining:
                server.connector.close_idle()
            if not is_held and server.users == 0:
                del self._servers[slug, upstream]
                if self._latest.get(slug) is server:
                    del self._latest[slug]
                await server.session.close()

    async def close(self) -> None:
        """Close everything."""
        servers = list(self._servers.values())
        self._servers.clear()
        self._latest.clear()
        for server in servers:
            await server.session.close()
