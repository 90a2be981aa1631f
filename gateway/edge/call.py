"""One request for a model: screened, read, admitted, forwarded, recorded."""

import asyncio
import contextlib
import logging
from dataclasses import dataclass

from gateway.edge.answer import Answer
from gateway.edge.body import (
    ClientGoneError,
    Receive,
    declared_length,
    discard,
    find_model,
    read_body,
    too_large,
)
from gateway.edge.clock import EdgeClock
from gateway.edge.config import EdgeConfig
from gateway.edge.exchange import Exchange, MovedError
from gateway.edge.forward import NotSentError, Parcel, forward, upstream_failed
from gateway.edge.gate import Gate
from gateway.edge.headers import Headers
from gateway.edge.holder import TableHolder
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routes import Matched
from gateway.edge.routing import Asked, Caller
from gateway.edge.table import Upstream
from gateway.edge.upstreams import ServerPool

logger = logging.getLogger(__name__)
ATTEMPTS = 3  # while not a byte has been sent
_BEFORE_THE_BODY = frozenset(
    {"invalid_api_key", "gateway_starting", "gateway_stale", "lane_not_found"}
)
_LINGER_BYTES = 256 * 2**20
_LINGER_SECONDS = 10.0
_REFRESH_SECONDS = 1.0
_LAST_WORD_SECONDS = 2.0  # for a client that does not read to hear why it was ended
_UNREACHABLE = upstream_failed("the model server cannot be reached.")
CLIENT_GONE = EdgeRefusal(499, "client_gone", "the client has left")


@dataclass(frozen=True, slots=True)
class Parts:
    """What a call works with."""

    config: EdgeConfig
    clock: EdgeClock
    holder: TableHolder
    gate: Gate
    pool: ServerPool


@dataclass(slots=True)
class Call:
    """A request on its way, and what will be recorded of it."""

    parts: Parts
    matched: Matched
    method: str
    headers: Headers
    caller: Caller
    lane: str | None
    receive: Receive
    answer: Answer
    bytes_in: int = 0
    exchange: Exchange | None = None  # the last one
    is_gone: bool = False


async def serve(call: Call) -> None:
    """Answer it. Whatever happens, no count and no connection is left behind."""
    refusal = _screen(call)
    if refusal is not None:
        await refuse_unread(call.answer, call.receive, refusal)
        return
    config = call.parts.config
    try:
        body = await read_body(
            call.receive, limit=config.max_body_bytes, seconds=config.body_seconds
        )
    except ClientGoneError:
        call.is_gone = True
        return
    if isinstance(body, EdgeRefusal):
        await refuse_unread(call.answer, call.receive, body)
        return
    call.bytes_in = len(body)
    model = find_model(body)
    if isinstance(model, EdgeRefusal):
        await call.answer.refuse(model)
        return
    await _serve_watched(call, Asked(model, call.lane), body)


def _screen(call: Call) -> EdgeRefusal | None:
    """What can be refused before the body is read."""
    route = call.parts.gate.choose(call.caller, Asked(None, call.lane))
    if isinstance(route, EdgeRefusal) and route.code in _BEFORE_THE_BODY:
        return route
    length = declared_length(call.headers)
    if isinstance(length, EdgeRefusal):
        return length
    limit = call.parts.config.max_body_bytes
    return too_large(limit) if length > limit else None


async def refuse_unread(answer: Answer, receive: Receive, refusal: EdgeRefusal) -> None:
    """Refuse a request whose body may still be coming.

    Many clients read no answer before they have sent everything, and closing while bytes arrive
    resets the connection, the refusal with it. So what still comes is thrown away for a while.
    """
    await answer.refuse_early(refusal)
    await discard(receive, most=_LINGER_BYTES, seconds=_LINGER_SECONDS)
    await answer.finish()


async def _serve_watched(call: Call, asked: Asked, body: bytes) -> None:
    async with asyncio.TaskGroup() as group:
        watcher = group.create_task(_watch_client(call))
        try:
            await _attempt(call, asked, body)
        finally:
            watcher.cancel()


async def _watch_client(call: Call) -> None:
    """Stop the exchange when the client leaves."""
    while (await call.receive())["type"] != "http.disconnect":
        pass
    call.is_gone = True
    if call.exchange is not None:
        call.exchange.stop(CLIENT_GONE)


async def _attempt(call: Call, asked: Asked, body: bytes) -> None:
    """Try until a byte has been sent: a server that moved or is gone may have a successor."""
    parcel = Parcel(call.method, call.matched.route.path, call.headers, body)
    unreachable: Upstream | None = None
    for _ in range(ATTEMPTS):
        exchange = call.parts.gate.enter(call.caller, asked)
        if isinstance(exchange, EdgeRefusal):
            await call.answer.refuse(exchange)
            return
        call.exchange = exchange
        upstream = exchange.route.upstream
        try:
            refusal = await _exchange(call, exchange, parcel, unreachable)
        except MovedError:
            continue
        except NotSentError as error:
            slug = exchange.route.lane.slug
            logger.warning("lane %s: its model server cannot be reached (%s)", slug, error)
            refusal = _UNREACHABLE
        finally:
            call.parts.gate.leave(exchange)
        if refusal is not None and refusal.code == _UNREACHABLE.code:
            await _refresh(call.parts.holder)  # an order may have been quicker than its table
            if refusal is _UNREACHABLE and upstream != unreachable:
                unreachable = upstream
                continue
            refusal = call.parts.gate.why_broken(exchange) or refusal
        await _end(call, refusal)
        return
    await call.answer.refuse(_UNREACHABLE)


async def _exchange(
    call: Call, exchange: Exchange, parcel: Parcel, unreachable: Upstream | None
) -> EdgeRefusal | None:
    """One attempt, counted by its caller: None when the answer is written, else why not."""
    upstream = exchange.route.upstream
    if upstream == unreachable:
        return _UNREACHABLE
    server = call.parts.pool.server(exchange.route.lane.slug, upstream)
    if server is None:
        return upstream_failed("the gateway has no key for this model server.")
    call.parts.gate.review(exchange)
    if call.is_gone:
        exchange.stop(CLIENT_GONE)
    return await forward(exchange, server, parcel, call.answer)


async def _end(call: Call, refusal: EdgeRefusal | None) -> None:
    """The connection to the model server is closed or idle; tell the client how it went."""
    if call.is_gone:
        return
    limit = call.parts.config.stalled_seconds if refusal is None else _LAST_WORD_SECONDS
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limit):
            await (call.answer.finish() if refusal is None else call.answer.fail(refusal))


async def _refresh(holder: TableHolder) -> None:
    """Read the table now, if Valkey answers soon."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_REFRESH_SECONDS):
            await holder.refresh()
