"""Forwards one admitted request to its model server, and the answer back as it comes."""

import logging
import time
from dataclasses import dataclass

import aiohttp
from aiohttp.http import HttpProcessingError

from gateway.edge.answer import Answer
from gateway.edge.asking import ServerAnswer, ask
from gateway.edge.connections import ServerProtocol, Unused
from gateway.edge.exchange import Exchange, MovedError
from gateway.edge.headers import Headers, LengthError, client_headers, find
from gateway.edge.pump import Pump
from gateway.edge.refusals import EdgeRefusal, refuse
from gateway.edge.retold import is_stream, retell
from gateway.edge.route import POST
from gateway.edge.spool import Spool
from gateway.edge.upload import Upload
from gateway.edge.upstream_routes import refuse_passage
from gateway.edge.upstreams import Server

logger = logging.getLogger(__name__)
_WITHOUT_BODY = frozenset({204, 304})


@dataclass(frozen=True, slots=True)
class Parcel:
    """What goes up: the request as it came."""

    method: str
    target: str  # path and query
    headers: Headers
    body: Spool
    passage: str | None = None  # the path, when it is for this server's engine to have it


async def forward(
    exchange: Exchange, server: Server, parcel: Parcel, answer: Answer
) -> EdgeRefusal | None:
    """Pass one request up and its answer down; None when all of it has been written.

    Else why it ended, for the caller to tell the client. The connection is closed or idle in
    either case. Raises NotSentError and MovedError while nothing has been sent to either side.
    """
    server.users += 1
    try:
        with exchange:
            return await _on_connection(exchange, server, parcel, answer)
    finally:
        exchange.close()
        server.users -= 1
    return exchange.stopped_by


async def _on_connection(
    exchange: Exchange, server: Server, parcel: Parcel, answer: Answer
) -> EdgeRefusal | None:
    """On a connection that is idle again afterwards, or closed."""
    if parcel.passage is not None:
        refusal = refuse_passage(server.upstream.engine, parcel.method, parcel.passage)
        if refusal is not None:
            return refusal
    unused = await server.connect()
    try:
        exchange.connected(unused.transport)
        return await _exchange(exchange, server, unused, parcel, answer)
    except MovedError:
        unused.connection.release()
        raise
    finally:
        if exchange.is_complete:
            unused.connection.release()
        else:
            unused.connection.close()


async def _exchange(
    exchange: Exchange, server: Server, unused: Unused, parcel: Parcel, answer: Answer
) -> EdgeRefusal | None:
    failure = "the model server did not answer."
    upload = Upload(parcel.body, exchange)
    length = parcel.body.length if parcel.method in POST else None
    head = server.head(parcel.method, parcel.target, parcel.headers, length)
    try:
        response = await ask(exchange, unused, head, upload, has_body=parcel.method != "HEAD")
        if objection := _objection(response.status):
            failure = objection
            raise aiohttp.ClientError(failure)
        failure = "the model server broke off its answer."
        if answer.has_started and not is_stream(response):
            return await retell(response, exchange)
        headers = _headers(response, answer.notes(exchange.route))
        has_body_now = response.content.total_bytes > 0
        exchange.waiting_since, exchange.writing_since = None, time.monotonic()
        await answer.start(response.status, headers, has_body_now=has_body_now)
        exchange.writing_since = None
        await _pass_on(unused.protocol, response.content, exchange, answer)
    except (aiohttp.ClientError, HttpProcessingError, LengthError, OSError) as error:
        lane = exchange.route.lane.slug
        logger.warning("lane %s: %s (%s)", lane, failure, type(error).__name__)
        return upstream_failed(failure, lane)
    finally:
        upload.stop()
    exchange.is_complete = upload.is_done  # else the server has not read all of the body
    return None


async def _pass_on(
    protocol: ServerProtocol, content: aiohttp.StreamReader, exchange: Exchange, answer: Answer
) -> None:
    """The answer as it comes; the end goes with the last chunk where that is known to be it."""
    while not answer.is_finished:
        exchange.waiting_since = time.monotonic()
        if answer.takes_chunks():
            await Pump(protocol, content, exchange, answer).run()
        chunk = await content.readany()
        exchange.waiting_since = None
        if not chunk:
            return
        exchange.writing_since = time.monotonic()
        await answer.write(chunk, is_last=content.at_eof())
        exchange.writing_since = None


def _objection(status: int) -> str:
    """Why an answer with this status is not the client's; empty when it is."""
    if status == 401:
        return "the model server does not accept the gateway's key."
    if not 200 <= status <= 599:
        return "the model server answered with a status that no answer has."
    return ""


def _headers(response: ServerAnswer, notes: Headers) -> Headers:
    headers = client_headers(response.headers)
    if response.status in _WITHOUT_BODY:  # a length of what does not come is none for uvicorn
        headers = [each for each in headers if each[0] != b"content-length"]
    headers += notes
    if response.status == 503 and find(headers, b"retry-after") is None:
        headers.append((b"retry-after", b"1"))
    return headers


def upstream_failed(words: str, lane: str = "") -> EdgeRefusal:
    """502, of this lane's server."""
    return refuse("upstream_failed", words, about=lane)
