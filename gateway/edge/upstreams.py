"""Connections to model servers: one pool for each generation of each lane's server."""

import select
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.connector import Connection
from multidict import CIMultiDict
from yarl import URL

from gateway.edge.table import LaneRoute, Upstream
from wire.sealing import Sealer

if TYPE_CHECKING:
    from asyncio import Transport

    from aiohttp.client_proto import ResponseHandler

_ADDED_BY_AIOHTTP: CIMultiDict[None] = CIMultiDict({"User-Agent": None, "Content-Type": None})
MOST_URLS = 200  # more than there are routes
IDLE_SECONDS = 3.0  # llama-server closes an idle connection after five
ON_CONNECTED: ContextVar[Callable[["Transport"], None]] = ContextVar("on_connected")


class PlainRequest(aiohttp.ClientRequest):
    """Has the caller's headers, and none that aiohttp would add."""

    def update_auto_headers(self, skip_auto_headers: Iterable[str] | None) -> None:
        """None."""
        self._skip_auto_headers = _ADDED_BY_AIOHTTP


class ServerConnector(aiohttp.TCPConnector):
    """Asks ON_CONNECTED between the connection and the first byte; keeps nothing while draining."""

    def __init__(self) -> None:
        super().__init__(limit=0, keepalive_timeout=IDLE_SECONDS)
        self.is_draining = False

    async def connect(self, req: Any, traces: Any, timeout: Any) -> Connection:  # noqa: ASYNC109 (aiohttp's signature)
        """A connection that nothing has been sent on since the last answer."""
        while True:
            connection = await super().connect(req, traces, timeout)
            transport = connection.transport
            if transport is not None and not _has_word(transport):
                break
            connection.close()
        try:
            ON_CONNECTED.get()(transport)
        except BaseException:
            connection.release()
            raise
        return connection

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
        self.session = aiohttp.ClientSession(
            connector=self.connector,
            timeout=timeout,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            request_class=PlainRequest,
        )
        self._urls: dict[str, URL] = {}
        self.users = 0
        self.silent_seconds = timeout.sock_read or 3600.0  # may pass without a byte either way

    def url(self, target: str) -> URL:
        """Its address of a path and query, untouched; those without a query are remembered."""
        url = self._urls.get(target)
        if url is None:
            url = URL(self.upstream.base_url + target, encoded=True)
            if len(self._urls) < MOST_URLS and "?" not in target:
                self._urls[target] = url
        return url


class ServerPool:
    """The model servers in use. Those that left the table close at the next one that finds them
    without a request; their connections close with the request."""

    def __init__(self, sealer: Sealer, *, connect_seconds: float, answer_seconds: float) -> None:
        self._sealer = sealer
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=connect_seconds, sock_read=answer_seconds
        )
        self._servers: dict[tuple[str, Upstream], Server] = {}

    def server(self, slug: str, upstream: Upstream) -> Server | None:
        """The server of a lane; None when its key cannot be opened with our keys."""
        server = self._servers.get((slug, upstream))
        if server is None:
            key = self._sealer.open(upstream.sealed_key)
            if key is None:
                return None
            server = self._servers[slug, upstream] = Server(upstream, key, self._timeout)
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
                await server.session.close()

    async def close(self) -> None:
        """Close everything."""
        servers = list(self._servers.values())
        self._servers.clear()
        for server in servers:
            await server.session.close()
