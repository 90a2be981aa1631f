"""Forwards one admitted request to its model server, and the answer back as it comes."""

import contextlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

import aiohttp
from yarl import URL

from gateway.edge.answer import Answer
from gateway.edge.body import pieces
from gateway.edge.exchange import Exchange, MovedError
from gateway.edge.headers import Headers, client_headers, upstream_headers
from gateway.edge.refusals import EdgeRefusal, refuse
from gateway.edge.retold import is_stream, retell
from gateway.edge.upstreams import ON_CONNECTED, Server

logger = logging.getLogger(__name__)
_AT_ONCE_BYTES = 262_144  # a larger body is written piece by piece


@dataclass(frozen=True, slots=True)
class Parcel:
    """What goes up: the request as it came, without its query, which may hold a key by mistake."""

    method: str
    path: str
    headers: Headers
    body: bytes


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
    failure = "the model server did not answer."
    try:
        response = await _request(exchange, server, parcel)
        async with contextlib.aclosing(_chunks(response)) as chunks:
            if response.status == 401:
                failure = "the model server does not accept the gateway's key."
                raise aiohttp.ClientError(failure)
            failure = "the model server broke off its answer."
            if answer.has_started and not is_stream(response):
                return await retell(response, chunks)
            await answer.start(response.status, _headers(response, answer.notes(exchange.route)))
            async for chunk in chunks:
                exchange.writing_since = time.monotonic()
                await answer.write(chunk)
                exchange.writing_since = None
        exchange.is_complete = True
        return None
    except (aiohttp.ClientError, OSError) as error:
        lane = exchange.route.lane.slug
        logger.warning("lane %s: %s (%s)", lane, failure, type(error).__name__)
        return upstream_failed(failure)


async def _request(exchange: Exchange, server: Server, parcel: Parcel) -> aiohttp.ClientResponse:
    url = URL(server.upstream.base_url + parcel.path, encoded=True)
    ON_CONNECTED.set(exchange.connected)
    length = len(parcel.body)
    headers = upstream_headers(parcel.headers, server.key)
    headers.append(("content-length", str(length)))
    data = parcel.body if length <= _AT_ONCE_BYTES else _pieces(parcel.body)
    try:
        return await server.session.request(
            parcel.method, url, data=data, headers=headers, allow_redirects=False
        )
    except MovedError:
        raise
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise NotSentError(type(error).__name__) from error


async def _chunks(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    """The answer as it comes; the connection closes unless it was read to its end."""
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    finally:
        response.close()


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for piece in pieces(body):
        yield piece


def _headers(response: aiohttp.ClientResponse, notes: Headers) -> Headers:
    headers = client_headers(response.raw_headers)
    headers += notes
    if response.status == 503 and "retry-after" not in response.headers:
        headers.append((b"retry-after", b"1"))
    return headers


def upstream_failed(words: str) -> EdgeRefusal:
    """502."""
    return refuse("upstream_failed", words)
