"""A body on its way up: at once, or piece by piece as fast as the model server takes it."""

import asyncio
import time

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import StreamWriter

from gateway.edge.exchange import Exchange
from gateway.edge.spool import Spool

_TURN_SECONDS = 0.005  # of sending to a server that takes all at once; then others have theirs
AT_ONCE_BYTES = 65_536  # fit into the socket's buffers, whatever the server does


class Upload:
    """A body is sent once; a large one is let go of when all of it has been sent."""

    def __init__(self, body: Spool, exchange: Exchange) -> None:
        self.whole = body.whole() if body.length <= AT_ONCE_BYTES else None
        self.is_done = self.whole is not None  # the server has been sent all of it
        self.is_answered = False  # or never will be: who waits now waits for the answer's body
        self._body = body
        self._exchange = exchange
        self._sending: asyncio.Task[None] | None = None

    def begin(self, protocol: ResponseHandler) -> None:
        """Send the pieces beside whoever reads the answer, which may come before the last one."""
        self._sending = asyncio.create_task(self._send(protocol))

    def stop(self) -> None:
        """Send no more."""
        if self._sending is not None:
            self._sending.cancel()

    async def _send(self, protocol: ResponseHandler) -> None:
        """Each piece that the server takes is a word from it."""
        writer, turn = StreamWriter(protocol, asyncio.get_running_loop()), time.monotonic()
        try:
            for piece in self._body.pieces():
                await writer.write(piece)
                now = time.monotonic()
                if not self.is_answered:
                    self._exchange.waiting_since = now
                if now - turn > _TURN_SECONDS:
                    await asyncio.sleep(0)
                    turn = time.monotonic()
        except (OSError, aiohttp.ClientError) as error:
            if not self.is_answered:
                protocol.set_exception(aiohttp.ClientOSError(str(error)), error)
            return
        self.is_done = True
        self._body.close()  # its answer may last for an hour
