"""A WebSocket on its way to a model server: who asks for what, the gate, the session."""

import asyncio
import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from gateway.edge.answer import Send
from gateway.edge.attempt import attempt, turn_of
from gateway.edge.call import Call
from gateway.edge.query import model_of
from gateway.edge.refusals import EdgeRefusal, refuse
from gateway.edge.routing import Asked, Caller
from gateway.edge.serving import refuse_caller
from gateway.edge.ws_session import Handshake, Session

CREDENTIAL_PROTOCOL = "openai-insecure-api-key."  # how OpenAI's clients in browsers show a key
NO_UPGRADE = refuse("upgrade_required", "this path takes WebSockets alone.")


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
    protocols = tuple(filter(None, scope["subprotocols"]))
    if call.caller.digest is None:
        call.caller = Caller(find_protocol_digest(protocols))
    model = refuse_caller(call) or model_of(call.query)
    if isinstance(model, EdgeRefusal):
        await call.answer.refuse(model)
        return
    session = Session(call, Handshake(call.target, tuple(_without_credentials(protocols))))
    turn = call.turn = turn_of(call, Asked(model, call.lane))
    async with asyncio.TaskGroup() as group:
        reader = group.create_task(session.read_client())
        try:
            await session.end(await attempt(call, turn, session.run))
        finally:
            reader.cancel()


def find_protocol_digest(protocols: Iterable[str]) -> str | None:
    """SHA-256 of the key that a browser shows as a subprotocol."""
    for each in protocols:
        key = each[len(CREDENTIAL_PROTOCOL) :]
        if key and _is_credential(each):
            return hashlib.sha256(key.encode()).hexdigest()
    return None


def _without_credentials(protocols: Iterable[str]) -> Iterator[str]:
    return (each for each in protocols if not _is_credential(each))


def _is_credential(protocol: str) -> bool:
    return protocol.lower().startswith(CREDENTIAL_PROTOCOL)
