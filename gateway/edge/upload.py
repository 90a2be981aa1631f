"""A body on its way up: at once, or piece by piece as fast as the model server takes it."""

import asyncio

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import StreamWriter

from gateway.edge.spool import Spool

AT_ONCE_BYTES = 65_536  # fit into the socket's buffers, whatever the server does


class Upload:
    """A body is sent once; a large one is let go of when all of it has been sent.

    A server that takes no piece for `seconds` ends the block of `limit`.
    """

    def __init__(self, body: Spool, seconds: float) -> None:
        self.whole = body.whole() if body.length <= AT_ONCE_BYTES else None
        self.is_done = self.whole is not None  # the server has been sent all of it
        self.is_answered = False  # the block of `limit` is over
        self.limit = asyncio.timeout(None)
        self._body = body
        self._seconds = seconds
        self._sending: asyncio.Task[None] | None = None

    def begin(self, protocol: ResponseHandler) -> None:
        """Send the pieces beside whoever reads the answer, which may come before the last one."""
        self._sending = asyncio.create_task(self._send(protocol))

    def stop(self) -> None:
        """Send no more."""
        if self._sending is not None:
            self._sending.cancel()

    async def _send(self, protocol: ResponseHandler) -> None:
        loop = asyncio.get_running_loop()
        writer = StreamWriter(protocol, loop)
        try:
            for piece in self._body.pieces():
                self._wait(loop.time() + self._seconds)
                await writer.write(piece)
        except (OSError, aiohttp.ClientError) as error:
            if not self.is_answered:
                protocol.set_exception(aiohttp.ClientOSError(str(error)), error)
            return
        self.is_done = True
        self._body.close()  # its answer may last for an hour
        self._wait(None)
        if not self.is_answered:  # else what has come of the answer has set it
            protocol.start_timeout()

    def _wait(self, until: float | None) -> None:
        """Until then for the next piece, unless the answer has begun or the time is over."""
        if not (self.is_answered or self.limit.expired()):
            self.limit.reschedule(until)
