"""A model server asked once, on a connection of aiohttp's pool that nothing else is using.

aiohttp's session would follow redirects, keep cookies and send again what a broken connection has
swallowed; no gateway may. So this takes its connector and its parser of answers, and writes the
request itself: nothing awaits between the last question "is it still right?" and the first byte.
"""

import time
from dataclasses import dataclass

import aiohttp
from aiohttp.client_proto import ResponseHandler

from gateway.edge.connections import Unused
from gateway.edge.exchange import Exchange
from gateway.edge.upload import Upload

_INTERIM = range(100, 200)
_SWITCHING = 101  # is final: nothing more comes in HTTP


@dataclass(slots=True)
class ServerAnswer:
    """The head of an answer, and its body as it comes."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]  # as they came
    content: aiohttp.StreamReader

    @property
    def kind(self) -> bytes:
        """Its Content-Type, in small letters."""
        kinds = (value for name, value in self.headers if name.lower() == b"content-type")
        return next(kinds, b"").lower()


async def ask(
    exchange: Exchange, unused: Unused, head: bytes, upload: Upload, *, has_body: bool
) -> ServerAnswer:
    """Write the request and wait for the head of its answer. `has_body` is true but for HEAD.

    Raises aiohttp.ClientError, OSError or HttpProcessingError; the connection is the caller's to
    close or release in every case.
    """
    protocol, transport = unused.protocol, unused.transport
    protocol.set_response_params(
        skip_payload=not has_body, read_until_eof=True, auto_decompress=False
    )
    if upload.whole is not None:  # no server can hold it up
        transport.write(head + upload.whole)
        return await _answer(protocol, exchange)
    transport.write(head)
    upload.begin(protocol)
    try:
        return await _answer(protocol, exchange)
    finally:
        upload.is_answered = True


async def _answer(protocol: ResponseHandler, exchange: Exchange) -> ServerAnswer:
    while True:
        exchange.waiting_since = time.monotonic()
        message, content = await protocol.read()
        if message.code not in _INTERIM or message.code == _SWITCHING:
            return ServerAnswer(message.code, message.raw_headers, content)
