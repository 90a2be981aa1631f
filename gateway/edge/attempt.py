"""One request at the gate and at its model server: admitted, forwarded, ended."""

import asyncio
import contextlib
import logging

from gateway.edge.call import Call
from gateway.edge.exchange import Exchange, MovedError
from gateway.edge.forward import NotSentError, Parcel, forward, upstream_failed
from gateway.edge.holder import TableHolder
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routing import Asked
from gateway.edge.table import Upstream

logger = logging.getLogger(__name__)
ATTEMPTS = 3  # while not a byte has been sent
_REFRESH_SECONDS = 1.0
_LAST_WORD_SECONDS = 2.0  # for a client that does not read to hear why it was ended
_UNREACHABLE = upstream_failed("the model server cannot be reached.")
CLIENT_GONE = EdgeRefusal(499, "client_gone", "the client has left")


async def serve_watched(call: Call, asked: Asked, body: bytes) -> None:
    """Serve it while its client stays. No count and no connection is left behind."""
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
