"""One WebSocket session: a client's and a model server's, joined by an exchange of the gate.

Each side is read only as fast as the other takes its messages.
"""

import asyncio
import contextlib
import logging
import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import aiohttp
from yarl import URL

from gateway.edge import verdicts
from gateway.edge.attempt import client_left
from gateway.edge.call import Call
from gateway.edge.connections import ON_CONNECTED
from gateway.edge.exchange import Exchange
from gateway.edge.forward import upstream_failed
from gateway.edge.headers import upstream_headers
from gateway.edge.refusals import TELLS_WHEN, EdgeRefusal, refuse
from gateway.edge.routing import Route, active_grant, identify
from gateway.edge.table import LaneRoute
from gateway.edge.upstream_routes import refuse_passage
from gateway.edge.upstreams import Server
from gateway.edge.waiting import CLIENT_GONE
from gateway.edge.ws_close import GOING_AWAY, NORMAL, OURS, TOO_BIG, close_of, passed_on, short
from gateway.edge.ws_protocol import CLOSE_SECONDS, MOST_MESSAGE_BYTES

logger = logging.getLogger(__name__)
HANDSHAKE_SECONDS = 10.0  # for a model server to answer one
_LOOK_SECONDS = 1.0
_LAST_WORD_SECONDS = 0.5  # for a model server to answer a close frame
_SOCKET_TIMEOUT = aiohttp.ClientWSTimeout(ws_close=_LAST_WORD_SECONDS)
_MESSAGES = MappingProxyType({aiohttp.WSMsgType.TEXT: "text", aiohttp.WSMsgType.BINARY: "bytes"})
_OWN_KEY = upstream_failed("the model server does not accept the gateway's key.")
_BROKEN = upstream_failed("the model server broke off its WebSocket.")
_UNREAD = upstream_failed("the model server does not read what it is sent.")
_SILENT = upstream_failed("the model server did not answer the WebSocket handshake.")
_LARGE = upstream_failed("the model server sent a message that is too large.")


@dataclass(frozen=True, slots=True)
class Handshake:
    """What goes up to open the model server's side."""

    path: str  # with the query, as it came
    protocols: tuple[str, ...]


class Session:
    """From the handshake to both ends closed. `read_client` runs beside `run`."""

    def __init__(self, call: Call, handshake: Handshake) -> None:
        self._call = call
        self._handshake = handshake
        self._monotonic = call.parts.clock.monotonic
        self._upstream: aiohttp.ClientWebSocketResponse | None = None
        self._heard_at = self._monotonic()
        self._sending_since: float | None = None  # the server has not taken a message yet
        self._unbooked_since = math.inf  # by the table's clock, while it has lost its booking
        self._look: asyncio.TimerHandle | None = None
        self._end = (NORMAL, "")  # how the first side closed that did

    async def read_client(self) -> None:
        """Pass the client's messages up; when it closes or is gone, stop the exchange."""
        while (message := await self._call.receive())["type"] == "websocket.receive":
            await self._pass_up(message)
        self._end = (passed_on(message.get("code")), message.get("reason") or "")
        if "reason" not in message:  # uvicorn has one from a close frame only
            self._end = (GOING_AWAY, "")
            client_left(self._call)
        elif self._call.exchange is not None:
            self._call.exchange.stop(CLIENT_GONE)

    async def run(self, exchange: Exchange, server: Server) -> EdgeRefusal | None:
        """Open the server's side and pass its messages down; None when it closed in order.

        Else why the session ended, for `end`. The connection to the server is closed in either
        case. Raises NotSentError and MovedError while nothing has been sent to either side.
        """
        server.users += 1
        try:
            with exchange:
                return await self._run(exchange, server)
        finally:
            self._stop_looking()
            await self._close_upstream(exchange.stopped_by)
            exchange.close()
            server.users -= 1
        return exchange.stopped_by

    async def end(self, refusal: EdgeRefusal | None) -> None:
        """Tell the client how it ended: an HTTP answer before the handshake, else a close."""
        if refusal is CLIENT_GONE or self._call.is_gone:
            return
        answer = self._call.answer
        if refusal is not None and not answer.has_started:
            await answer.refuse(refusal)
            return
        answer.refusal = refusal
        code, reason = self._end if refusal is None else close_of(refusal)
        if refusal is _LARGE:
            code = TOO_BIG
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await answer.close_socket(code, reason)

    async def _run(self, exchange: Exchange, server: Server) -> EdgeRefusal | None:
        passage = self._call.matched.passage
        if passage is not None:
            refusal = refuse_passage(server.upstream.engine, self._call.method, passage)
            if refusal is not None:
                return refusal
        try:
            upstream = self._upstream = await self._connect(exchange, server)
            await self._accept(exchange, upstream.protocol)
            return await self._pass_down(exchange, upstream)
        except aiohttp.WSServerHandshakeError as error:
            return _declined(error)
        except aiohttp.ClientError as error:
            logger.warning("lane %s: WebSocket: %s", exchange.route.lane.slug, type(error).__name__)
            return _SILENT if self._upstream is None else _BROKEN
        except OSError:  # uvicorn's word for a client that is gone
            self._call.is_gone = True
            return CLIENT_GONE

    async def _connect(self, exchange: Exchange, server: Server) -> aiohttp.ClientWebSocketResponse:
        ON_CONNECTED.set(exchange.connected)
        headers = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in (*upstream_headers(self._call.headers), *server.own_headers)
        ]
        limit = asyncio.timeout(HANDSHAKE_SECONDS)
        try:
            async with limit:
                return await server.session.ws_connect(
                    URL(server.upstream.base_url + self._handshake.path, encoded=True),
                    headers=headers,
                    protocols=self._handshake.protocols,
                    max_msg_size=MOST_MESSAGE_BYTES,
                    timeout=_SOCKET_TIMEOUT,
                )
        except aiohttp.ClientConnectionError as error:
            if exchange.was_sent:
                raise
            raise server.not_sent(error) from error
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise aiohttp.ServerTimeoutError from error

    async def _accept(self, exchange: Exchange, protocol: str | None) -> None:
        """The model server's side is open: open the client's."""
        answer = self._call.answer
        await answer.switch(protocol, answer.notes(exchange.route))
        self._heard_at = self._monotonic()
        self._look_again(exchange)

    async def _pass_down(
        self, exchange: Exchange, upstream: aiohttp.ClientWebSocketResponse
    ) -> EdgeRefusal | None:
        """Until the server closes; the client is written to no faster than it reads."""
        while True:
            kind, data, extra = await upstream.receive()
            if kind not in _MESSAGES:
                return self._server_closed(kind, data, extra)
            self._heard_at = exchange.writing_since = self._monotonic()
            message = {"type": "websocket.send", _MESSAGES[kind]: data}
            await self._call.answer.send_message(message, _size(data))
            exchange.writing_since = None

    async def _pass_up(self, message: dict[str, Any]) -> None:
        """One message; the next is not asked for before the server has taken this one."""
        upstream = self._upstream
        text, data = message.get("text"), message.get("bytes")
        self._heard_at = self._sending_since = self._monotonic()
        with contextlib.suppress(aiohttp.ClientError, OSError):  # `run` hears of it, too
            if upstream is not None and text is not None:
                await upstream.send_str(text)
            elif upstream is not None and data is not None:
                await upstream.send_bytes(data)
        self._sending_since = None
        self._call.bytes_in += _size(data if text is None else text)

    def _server_closed(
        self, kind: aiohttp.WSMsgType, data: Any, extra: str | None
    ) -> EdgeRefusal | None:
        if kind is aiohttp.WSMsgType.CLOSE:
            self._end = (passed_on(data), short(extra or ""))
            return None
        is_large = isinstance(data, aiohttp.WebSocketError) and data.code == TOO_BIG
        return _LARGE if is_large else _BROKEN

    async def _close_upstream(self, why: EdgeRefusal | None) -> None:
        """Say goodbye and wait a moment for the answer; whoever calls cuts the connection."""
        if self._upstream is None:
            return
        code, reason = self._end if why is None or why is CLIENT_GONE else close_of(why)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORD_SECONDS):
                await self._upstream.close(code=code, message=reason.encode())

    def _look_again(self, exchange: Exchange) -> None:
        """Now and then: has the session's right ended, or has it come to a halt?"""
        why = self._overdue(exchange)
        if why is not None:
            exchange.stop(why)
            return
        loop = asyncio.get_running_loop()
        self._look = loop.call_later(_LOOK_SECONDS, self._look_again, exchange)

    def _overdue(self, exchange: Exchange) -> EdgeRefusal | None:
        parts, now = self._call.parts, self._monotonic()
        idle, stalled = parts.config.websocket_idle_seconds, parts.config.stalled_seconds
        if now - self._heard_at > idle:
            return refuse("request_timeout", f"no message has passed for {idle:g} s.")
        if self._sending_since is not None and now - self._sending_since > stalled:
            return _UNREAD
        table = parts.holder.table
        if table is None:
            return None
        token = identify(table, self._call.caller, parts.clock.now())
        slug = exchange.route.lane.slug
        if isinstance(token, EdgeRefusal):
            return token
        if token.lanes and slug not in token.lanes:
            return verdicts.no_lane(slug)
        return self._unbooked(exchange.route, table.lanes.get(slug))

    def _unbooked(self, route: Route, lane: LaneRoute | None) -> EdgeRefusal | None:
        """Of a session that a booking has let in: that it is over, and the drain time, too."""
        if route.grant is None or lane is None:
            return None
        now = self._call.parts.clock.now()
        grant = active_grant(lane, now)
        if grant is not None and grant.admits(route.token.owner_id):
            self._unbooked_since = math.inf
            return None
        self._unbooked_since = min(self._unbooked_since, now)
        if now - self._unbooked_since <= self._call.parts.config.drain_seconds:
            return None
        return refuse("model_switching", f"your booking of lane '{lane.slug}' has ended.")

    def _stop_looking(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None


def _declined(error: aiohttp.WSServerHandshakeError) -> EdgeRefusal:
    """What the client hears when the model server refuses: its status, if it means the client."""
    if error.status == 401:
        return _OWN_KEY
    if not 400 <= error.status <= 599:
        return _SILENT
    words = f"{OURS}the model server refused the WebSocket ({error.status})."
    retry_after = 1 if error.status in TELLS_WHEN else None
    return EdgeRefusal(error.status, "upstream_refused", words, retry_after)


def _size(data: str | bytes | None) -> int:
    """In bytes, as it came over the wire."""
    if isinstance(data, str) and not data.isascii():
        return len(data.encode())
    return len(data or b"")
