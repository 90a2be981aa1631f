"""The request's body: spooled as it comes, within a limit and a time, and asked for the model."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import orjson

from gateway.edge.json_scan import NOT_TEXT, ModelScan
from gateway.edge.refusals import EdgeRefusal, refuse
from gateway.edge.spool import Spool

Receive = Callable[[], Awaitable[Any]]
PARSED_BYTES = 65_536  # at most: 22,000 empty lists, which take orjson 3 ms
_NO_OBJECT = refuse("invalid_request_error", "the request's body is not a JSON object.")


class ClientGoneError(Exception):
    """The client has left; nobody waits for an answer."""


class ModelReader(Protocol):
    """Reads the model's name out of a body that comes in pieces."""

    async def feed(self, chunk: bytes) -> EdgeRefusal | None:
        """The next bytes; a refusal when the body cannot become a good one."""

    def finish(self) -> str | EdgeRefusal | None:
        """The model; None when the body names none."""


class JsonReader:
    """A JSON body: parsed when it is small, scanned while it arrives when it is not."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._size = 0
        self._scan: ModelScan | None = None

    async def feed(self, chunk: bytes) -> EdgeRefusal | None:
        """The next bytes."""
        if self._scan is not None:
            return await self._scan.feed(chunk)
        self._held.append(chunk)
        self._size += len(chunk)
        if self._size <= PARSED_BYTES:
            return None
        self._scan = ModelScan()
        held, self._held = self._held, []
        return await self._scan.feed(b"".join(held))

    def finish(self) -> str | EdgeRefusal | None:
        """The model."""
        return find_model(b"".join(self._held)) if self._scan is None else self._scan.finish()


def declared_length(raw: bytes | None) -> int | EdgeRefusal:
    """Content-Length, 0 when there is none; a refusal when it is not a number."""
    if raw is None:
        return 0
    if not raw.isdigit():
        return refuse("invalid_request_error", "Content-Length is not a number.")
    return int(raw)


async def read_body(
    receive: Receive, spool: Spool, reader: ModelReader, *, limit: int, seconds: float | None
) -> EdgeRefusal | None:
    """Take the whole body in, or say why not; ClientGoneError when the client leaves meanwhile.

    One that is here already (None for `seconds`) needs no limit to the time it takes.
    """
    if seconds is None:
        return await _take(await receive(), spool, reader, limit)
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                refusal = await _take(message, spool, reader, limit)
                if refusal is not None or not message.get("more_body", False):
                    return refusal
    except TimeoutError:
        words = f"the request's body did not arrive within {seconds:g} s."
        return refuse("request_timeout", words)


async def _take(message: Any, spool: Spool, reader: ModelReader, limit: int) -> EdgeRefusal | None:
    if message["type"] != "http.request":
        raise ClientGoneError
    chunk: bytes = message.get("body", b"")
    if spool.length + len(chunk) > limit:
        return too_large(limit)
    return spool.add(chunk) or await reader.feed(chunk)


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
    """The model that a small JSON body names; None when it names none."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        return refuse("invalid_request_error", f"the request's body is not JSON: {error}.")
    if not isinstance(value, dict):
        return _NO_OBJECT
    model = value.get("model")
    return model if model is None or isinstance(model, str) else NOT_TEXT
