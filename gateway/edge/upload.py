"""A body on its way up, piece by piece, as fast as the model server takes it."""

import asyncio
from collections.abc import Iterator

from gateway.edge.spool import Spool

AT_ONCE_BYTES = 65_536  # fit into the socket's buffers, whatever the server does


class Upload:
    """What aiohttp sends, once: a large body is let go of when all of it has been sent.

    A server that takes no piece for `seconds` ends the block of `limit`.
    """

    def __init__(self, body: Spool, seconds: float) -> None:
        self.limit = asyncio.timeout(None)
        self.is_answered = False  # the block of `limit` is over
        self._body = body
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._pieces: Iterator[bytes] | None = None
        self._whole: bytes | None = None
        if body.length <= AT_ONCE_BYTES:
            self._whole = body.whole()
        if self._whole is None:
            self._pieces = body.pieces()

    @property
    def data(self) -> "bytes | Upload":
        """A small body as it is, which no server can hold up; else the pieces."""
        return self if self._whole is None else self._whole

    @property
    def is_done(self) -> bool:
        """Whether the server has been sent all of it."""
        return self._pieces is None

    def __aiter__(self) -> "Upload":
        """The pieces; they are sent once."""
        return self

    async def __anext__(self) -> bytes:
        """The next piece; the one before has been written."""
        piece = None if self._pieces is None else next(self._pieces, None)
        if piece is None:
            self._pieces = None
            self._body.close()  # its answer may last for an hour
            self._wait(None)
            raise StopAsyncIteration
        self._wait(self._loop.time() + self._seconds)
        return piece

    def _wait(self, until: float | None) -> None:
        """Until then for the next one, unless the answer has begun."""
        if not self.is_answered:
            self.limit.reschedule(until)
