"""A WebSocket on its way to a model server: who asks for what, the gate, the session."""

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Iterable
from typing import Any

from gateway.edge.admission import admit
from gateway.edge.answer import Send
from gateway.edge.attempt import ATTEMPTS, CLIENT_GONE
from gateway.edge.call import Call
from gateway.edge.exchange import Exchange, MovedError
from gateway.edge.forward import NotSentError, upstream_failed
from gateway.edge.holder import TableHolder
from gateway.edge.query import model_of, refuse_query
from gateway.edge.queue import Turn
from gateway.edge.refusals import EdgeRefusal, refuse
from gateway.edge.routing import Asked, Caller
from gateway.edge.ws_session import Handshake, Session

logger = logging.getLogger(__name__)
CREDENTIAL_PROTOCOL = "openai-insecure-api-key."  # how OpenAI's clients in browsers show a key
_REFRESH_SECONDS = 1.0
NO_UPGRADE = refuse("upgrade_required", "this path takes WebSockets alone.")
_UNREACHABLE = upstream_failed("the model server cannot be reached.")


def as_http(send: Send) -> Send:
    """A send that takes HTTP's messages for an answer before the handshake, and WebSocket's."""

    async def translated(message: dict[str, Any]) -> None:
        if message["type"].startswith("http."):
            message["type"] = f"websocket.{message['type']}"
        await send(message)

    return translated


async def serve_websocket(call: Call, scope: dict[str, Any]) -> None:
    """Open it and keep it until one side or the gate ends it. No count and no task is left."""
    await call.receive()  # "websocket.connect"
    if call.caller.digest is None:
        call.caller = Caller(find_protocol_digest(scope["subprotocols"]))
    model = refuse_query(scope["query_string"]) or model_of(scope["query_string"])
    if isinstance(model, EdgeRefusal):
        await call.answer.refuse(model)
        return
    session = Session(call, _handshake(call, scope))
    async with asyncio.TaskGroup() as group:
        reader = group.create_task(session.read_client())
        try:
            await _attempt(call, Asked(model, call.lane), session)
        finally:
            reader.cancel()


def find_protocol_digest(protocols: Iterable[str]) -> str | None:
    """SHA-256 of the key that a browser shows as a subprotocol."""
    for each in protocols:
        key = each.removeprefix(CREDENTIAL_PROTOCOL)
        if key and key != each:
            return hashlib.sha256(key.encode()).hexdigest()
    return None


def _handshake(call: Call, scope: dict[str, Any]) -> Handshake:
    query = scope["query_string"].decode("ascii")
    path = call.matched.route.path + (f"?{query}" if query else "")
    protocols = [each for each in scope["subprotocols"] if each]
    return Handshake(path, tuple(x for x in protocols if not x.startswith(CREDENTIAL_PROTOCOL)))


async def _attempt(call: Call, asked: Asked, session: Session) -> None:
    """Try until a byte has been sent: a server that moved or is gone may have a successor."""
    gate = call.parts.gate
    refusal: EdgeRefusal | None = _UNREACHABLE
    turn = call.turn = Turn(call.caller, asked, patience=gate.waiters.patience)
    for _ in range(ATTEMPTS):
        exchange = await admit(gate, turn)
        if isinstance(exchange, EdgeRefusal):
            await session.end(exchange)
            return
        call.exchange = exchange
        try:
            refusal = await _exchange(call, exchange, session)
        except MovedError:
            continue
        except NotSentError as error:
            slug = exchange.route.lane.slug
            logger.warning("lane %s: its model server cannot be reached (%s)", slug, error)
            refusal = _UNREACHABLE
        finally:
            gate.leave(exchange)
        if refusal is None or refusal.code != _UNREACHABLE.code:
            break
        await _refresh(call.parts.holder)  # an order may have been quicker than its table
        if refusal is not _UNREACHABLE:
            refusal = gate.why_broken(exchange) or refusal
            break
    await session.end(refusal)


async def _exchange(call: Call, exchange: Exchange, session: Session) -> EdgeRefusal | None:
    """One attempt, counted by its caller: None when the server closed in order, else why not."""
    server = call.parts.pool.server(exchange.route.lane.slug, exchange.route.upstream)
    if server is None:
        return upstream_failed("the gateway has no key for this model server.")
    call.parts.gate.review(exchange)
    if call.is_gone:
        exchange.stop(CLIENT_GONE)
    return await session.run(exchange, server)


async def _refresh(holder: TableHolder) -> None:
    """Read the table now, if Valkey answers soon."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_REFRESH_SECONDS):
            await holder.refresh()
