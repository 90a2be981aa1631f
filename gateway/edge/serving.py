"""A request for a model: screened, its body read and asked for the model's name."""

from gateway.edge.answer import Answer
from gateway.edge.attempt import serve_watched
from gateway.edge.body import (
    ClientGoneError,
    JsonReader,
    ModelReader,
    Receive,
    declared_length,
    discard,
    read_body,
    too_large,
)
from gateway.edge.call import Call
from gateway.edge.form_scan import KIND as FORM
from gateway.edge.form_scan import form_reader
from gateway.edge.query import model_of
from gateway.edge.refusals import EdgeRefusal, refuse
from gateway.edge.route import POST, ModelIn
from gateway.edge.routing import Asked
from gateway.edge.spool import MIDDLING_BYTES, SMALL_BYTES, Spool
from gateway.edge.upstream_routes import OTHER, refuse_passage

_LINGER_BYTES = 256 * 2**20
_LINGER_SECONDS = 10.0
_NO_BODY = refuse("invalid_request_error", "a GET or HEAD request takes no body.")
_ENCODED = refuse(
    "invalid_request_error", "send the body plain, without Content-Encoding: its model is read."
)

Fields = dict[bytes, bytes]


async def serve(call: Call) -> None:
    """Answer it. Whatever happens, no count, no connection and no spooled byte is left behind."""
    fields: Fields = dict(call.headers)
    reader = _screen(call, fields)
    if isinstance(reader, EdgeRefusal):
        await refuse_unread(call.answer, call.receive, reader)
        return
    is_form = call.matched.route.model_in is ModelIn.FORM  # sound and pictures, for minutes
    body = Spool(call.parts.spools, SMALL_BYTES if is_form else MIDDLING_BYTES)
    try:
        await _serve(call, reader, body)
    except ClientGoneError:
        call.is_gone = True
    finally:
        body.close()


async def _serve(call: Call, reader: ModelReader | None, body: Spool) -> None:
    """Take the body in, find the model, and ask for it."""
    if reader is None:
        model = model_of(call.query)
    else:
        config = call.parts.config
        seconds = None if call.has_whole_body else config.body_seconds
        refusal = await read_body(
            call.receive, body, reader, limit=config.max_body_bytes, seconds=seconds
        )
        call.bytes_in = body.length
        if refusal is not None:
            body.close()
            await refuse_unread(call.answer, call.receive, refusal)
            return
        model = reader.finish()
    if isinstance(model, EdgeRefusal):
        await call.answer.refuse(model)
    else:
        await serve_watched(call, Asked(model, call.lane), body)


def _screen(call: Call, fields: Fields) -> ModelReader | EdgeRefusal | None:
    """What can be refused before the body is read; else who reads it, None for no body."""
    refusal = refuse_caller(call)
    if refusal is not None:
        return refusal
    length = declared_length(fields.get(b"content-length"))
    if isinstance(length, EdgeRefusal):
        return length
    if call.method not in POST:
        return _NO_BODY if length or b"transfer-encoding" in fields else None
    limit = call.parts.config.max_body_bytes
    if length > limit:
        return too_large(limit)
    if fields.get(b"content-encoding", b"identity").strip().lower() not in (b"", b"identity"):
        return _ENCODED
    return _reader(call, fields)


def refuse_caller(call: Call) -> EdgeRefusal | None:
    """Who may not call at all, and what no lane's engine may be asked for."""
    passage, asked = call.matched.passage, Asked(None, call.lane)
    refusal = call.parts.gate.known(call.caller, asked)
    if refusal is not None or passage is None:
        return refusal
    route = call.parts.gate.choose(call.caller, asked)
    if isinstance(route, EdgeRefusal):
        return route if call.matched.route is OTHER else None
    return refuse_passage(route.upstream.engine, call.method, passage)


def _reader(call: Call, fields: Fields) -> ModelReader | EdgeRefusal:
    """What reads the model out of this body."""
    if call.matched.route.model_in is ModelIn.FORM:
        kind = fields.get(b"content-type", b"")
        if kind[: len(FORM)].lower() == FORM:
            return form_reader(kind)
    return JsonReader()


async def refuse_unread(answer: Answer, receive: Receive, refusal: EdgeRefusal) -> None:
    """Refuse a request whose body may still be coming.

    Many clients read no answer before they have sent everything, and closing while bytes arrive
    resets the connection, the refusal with it. So what still comes is thrown away for a while.
    """
    await answer.refuse_early(refusal)
    await discard(receive, most=_LINGER_BYTES, seconds=_LINGER_SECONDS)
    await answer.finish()
