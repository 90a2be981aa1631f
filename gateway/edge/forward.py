"""Forwards one admitted request to its model server, and the answer back as it comes."""

import logging
import time
from dataclasses import dataclass

import aiohttp

from gateway.edge.answer import Answer
from gateway.edge.exchange import Exchange, MovedError
from gateway.edge.headers import Headers, client_headers, upstream_headers
from gateway.edge.refusals import EdgeRefusal, refuse
from gateway.edge.retold import is_stream, retell
from gateway.edge.route import POST
from gateway.edge.spool import Spool
from gateway.edge.upload import Upload
from gateway.edge.upstream_routes import refuse_passage
from gateway.edge.upstreams import ON_CONNECTED, Server

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


class NotSentError(Exception):
    """The model server could not be reached; it has not seen a byte."""


async def forward(
    exchange: Exchange, server: Server, parcel: Parcel, answer: Answer
) -> EdgeRefusal | None:
    """Pass one request up and its answer down; None when all of it has been written.

    Else why it ended, for the caller to tell the client. The connection is closed or idle in
    either case. Raises NotSentError and MovedError while nothing has been sent to either side.
    """
    server.users += 1
    try:
        async with exchange.limit:
            exchange.open()
            return await _exchange(exchange, server, parcel, answer)
    except TimeoutError:
        if exchange.stopped_by is None:
            raise
    finally:
        exchange.close()
        server.users -= 1
    return exchange.stopped_by


async def _exchange(
    exchange: Exchange, server: Server, parcel: Parcel, answer: Answer
) -> EdgeRefusal | None:
    if parcel.passage is not None:
        engine = server.upstream.engine
        refusal = refuse_passage(engine, parcel.method, parcel.passage)
        if refusal is not None:
            return refusal
    failure = "the model server did not answer."
    upload = Upload(parcel.body, server.silent_seconds)
    try:
        response = await _request(exchange, server, parcel, upload)
        try:
            if objection := _objection(response.status):
                failure = objection
                raise aiohttp.ClientError(failure)
            failure = "the model server broke off its answer."
            if answer.has_started and not is_stream(response):
                return await retell(response)
            await answer.start(response.status, _headers(response, answer.notes(exchange.route)))
            await _pass_on(response.content, exchange, answer)
        finally:
            response.close()  # the connection, too, unless it was read to its end
        exchange.is_complete = upload.is_done  # else the server has not read all of the body
        return None
    except (aiohttp.ClientError, OSError) as error:
        lane = exchange.route.lane.slug
        logger.warning("lane %s: %s (%s)", lane, failure, type(error).__name__)
        return upstream_failed(failure, lane)


async def _request(
    exchange: Exchange, server: Server, parcel: Parcel, upload: Upload
) -> aiohttp.ClientResponse:
    url = server.url(parcel.target)
    ON_CONNECTED.set(exchange.connected)
    headers = upstream_headers(parcel.headers, server.key)
    if parcel.method in POST:
        headers.append(("content-length", str(parcel.body.length)))
    asking = server.session.request(
        parcel.method, url, data=upload.data, headers=headers, allow_redirects=False
    )
    try:
        if upload.is_done:  # whole: no server can hold it up
            return await asking
        async with upload.limit:
            return await asking
    except MovedError:
        raise
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise NotSentError(type(error).__name__) from error
    finally:
        upload.is_answered = True


async def _pass_on(content: aiohttp.StreamReader, exchange: Exchange, answer: Answer) -> None:
    """The answer as it comes; the end goes with the last chunk where that is known to be it."""
    while not answer.is_finished and (chunk := await content.readany()):
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


def _headers(response: aiohttp.ClientResponse, notes: Headers) -> Headers:
    headers = client_headers(response.raw_headers)
    if response.status in _WITHOUT_BODY:  # a length of what does not come is none for uvicorn
        headers = [each for each in headers if each[0] != b"content-length"]
    headers += notes
    if response.status == 503 and "retry-after" not in response.headers:
        headers.append((b"retry-after", b"1"))
    return headers


def upstream_failed(words: str, lane: str = "") -> EdgeRefusal:
    """502, of this lane's server."""
    return refuse("upstream_failed", words, about=lane)
