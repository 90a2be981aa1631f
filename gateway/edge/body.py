"""The request's body: read up to a limit and within a time, and asked for the model's name."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import orjson

from gateway.edge.headers import find
from gateway.edge.refusals import EdgeRefusal, refuse

Receive = Callable[[], Awaitable[Any]]
_CHUNK_BYTES = 65_536
_SMALL_BYTES = 2**20  # needs no counting
MOST_VALUES = 1_000_000


class ClientGoneError(Exception):
    """The client has left; nobody waits for an answer."""


def declared_length(headers: Iterable[tuple[bytes, bytes]]) -> int | EdgeRefusal:
    """Content-Length, 0 when there is none; a refusal when it is not a number."""
    raw = find(headers, b"content-length")
    if raw is None:
        return 0
    if not raw.isdigit():
        return refuse("invalid_request_error", "Content-Length is not a number.")
    return int(raw)


async def read_body(receive: Receive, *, limit: int, seconds: float) -> bytes | EdgeRefusal:
    """The whole body, or why not; ClientGoneError when the client leaves meanwhile."""
    chunks: list[bytes] = []
    length = 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise ClientGoneError
                chunk: bytes = message.get("body", b"")
                length += len(chunk)
                if length > limit:
                    return too_large(limit)
                chunks.append(chunk)
                if not message.get("more_body", False):
                    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
    except TimeoutError:
        words = f"the request's body did not arrive within {seconds:g} s."
        return refuse("request_timeout", words)


async def discard(receive: Receive, *, most: int, seconds: float) -> None:
    """Read on for a moment, so that a refusal is not lost in a reset of the connection."""
    try:
        async with asyncio.timeout(seconds):
            while most > 0:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
                most -= len(message.get("body", b""))
    except TimeoutError:
        return


def too_large(limit: int) -> EdgeRefusal:
    """413."""
    return refuse("request_too_large", f"a request's body may have {limit} bytes at most.")


def find_model(body: bytes) -> str | EdgeRefusal | None:
    """The model that a JSON body names; None when it names none.

    Parsing holds up every stream. A long text or picture takes it no time, but 60 MB of empty
    lists took 11 s and 1 GB: hence a limit to the values, counted by what comes before each.
    """
    if len(body) > _SMALL_BYTES and sum(map(body.count, (b",", b"[", b"{"))) > MOST_VALUES:
        return refuse("request_too_large", f"a body may hold {MOST_VALUES} values at most.")
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        return refuse("invalid_request_error", f"the request's body is not JSON: {error}.")
    if not isinstance(value, dict):
        return refuse("invalid_request_error", "the request's body is not a JSON object.")
    model = value.get("model")
    if model is None or isinstance(model, str):
        return model
    return refuse("invalid_request_error", "'model' is not a string.")


def pieces(body: bytes) -> Iterable[bytes]:
    """A large body in pieces, so that writing it waits for the server and blocks nobody."""
    return (body[at : at + _CHUNK_BYTES] for at in range(0, len(body), _CHUNK_BYTES))
