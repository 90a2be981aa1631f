"""Model servers as the edge calls them: one pool for each generation of each lane's server."""

import asyncio
import errno
import re
from collections.abc import Iterable
from ipaddress import ip_address

import aiohttp
from yarl import URL

from gateway.edge.connections import ServerConnector, Unused
from gateway.edge.headers import Headers, upstream_headers
from gateway.edge.table import LaneRoute, Upstream
from wire.sealing import Sealer

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HOST_AWAY = frozenset({errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN})
_ADDED_BY_AIOHTTP = ("Accept", "User-Agent")


class NotSentError(Exception):
    """The model server could not be reached; it has not seen a byte.

    `is_host_away`: not even its machine answered, which would have refused at once.
    """

    def __init__(self, reason: str, *, is_host_away: bool = False) -> None:
        super().__init__(reason)
        self.is_host_away = is_host_away


class Server:
    """One model server as the edge calls it."""

    def __init__(self, upstream: Upstream, key: str, timeout: aiohttp.ClientTimeout) -> None:
        self.upstream = upstream
        self.connector = ServerConnector()
        self.session = aiohttp.ClientSession(  # for WebSockets
            connector=self.connector,
            timeout=timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_ADDED_BY_AIOHTTP,
        )
        self.users = 0
        self._timeout = timeout
        base = URL(upstream.base_url, encoded=True)
        self._place = aiohttp.ClientRequest("GET", base, loop=asyncio.get_running_loop())
        self._is_here = _is_loopback(base.host or "")
        self._prefix = base.raw_path.rstrip("/")
        self._host = b"host: %b\r\n" % (base.host_port_subcomponent or "").encode("ascii")
        self.own_headers: Headers = [
            (b"authorization", b"Bearer %b" % key.encode()),
            (b"accept-encoding", b"identity"),  # counts are read from the answer's tail
        ]
        self._own_lines = _lines(self.own_headers)

    async def connect(self) -> Unused:
        """A connection that nobody uses; NotSentError when there is none to be had."""
        try:
            return await self.connector.unused(self._place, self._timeout)
        except (aiohttp.ClientConnectionError, TimeoutError) as error:
            raise self.not_sent(error) from error

    def not_sent(self, error: BaseException) -> NotSentError:
        """Why it could not be reached. On this machine nothing but the server can be away."""
        is_silent = isinstance(error, TimeoutError) or _errno(error) in _HOST_AWAY
        is_away = is_silent and not self._is_here
        return NotSentError(type(error).__name__, is_host_away=is_away)

    def head(self, method: str, target: str, headers: Headers, length: int | None) -> bytes:
        """What is written before the body: path and query untouched, the caller's own headers."""
        end = b"\r\n" if length is None else b"content-length: %d\r\n\r\n" % length
        line = f"{method} {self._prefix}{target} HTTP/1.1\r\n".encode("latin-1")
        return b"".join((line, self._host, _lines(upstream_headers(headers)), self._own_lines, end))


class ServerPool:
    """The model servers in use. Those that left the table close at the next one that finds them
    without a request; their connections close with the request."""

    def __init__(self, sealer: Sealer, *, connect_seconds: float) -> None:
        self._sealer = sealer
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds)
        self._servers: dict[tuple[str, Upstream], Server] = {}
        self._latest: dict[str, Server] = {}  # by lane: to compare is quicker than to hash

    def server(self, slug: str, upstream: Upstream) -> Server | None:
        """The server of a lane; None when its key cannot be opened with our keys, or is none."""
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


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _errno(error: BaseException) -> int | None:
    return error.errno if isinstance(error, OSError) else None


def _lines(headers: Headers) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])
