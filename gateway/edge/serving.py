"""A request for a model: screened, its body read and asked for the model's name."""

from gateway.edge.answer import Answer
from gateway.edge.attempt import serve_watched
from gateway.edge.body import (
    ClientGoneError,
    Receive,
    declared_length,
    discard,
    find_model,
    read_body,
    too_large,
)
from gateway.edge.call import Call
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routing import Asked

_BEFORE_THE_BODY = frozenset(
    {"invalid_api_key", "gateway_starting", "gateway_stale", "lane_not_found"}
)
_LINGER_BYTES = 256 * 2**20
_LINGER_SECONDS = 10.0


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
    await serve_watched(call, Asked(model, call.lane), body)


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
