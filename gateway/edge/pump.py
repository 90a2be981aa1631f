"""A stream on its way down, each chunk written where it arrives: no task is woken for it."""

import asyncio
import time

import aiohttp

from gateway.edge.answer import Answer
from gateway.edge.connections import ServerProtocol
from gateway.edge.exchange import Exchange


class Pump:
    """Passes plain chunks on. What is more than that is left to the task that waits in `run`."""

    def __init__(
        self,
        protocol: ServerProtocol,
        content: aiohttp.StreamReader,
        exchange: Exchange,
        answer: Answer,
    ) -> None:
        self._protocol = protocol
        self._content = content
        self._exchange = exchange
        self._answer = answer

    async def run(self) -> None:
        """Until the end, an error, or a client that does not read as fast as its server speaks."""
        self._halted = asyncio.get_running_loop().create_future()
        self._protocol.on_data = self._take
        try:
            self._take()
            await self._halted
        finally:
            self._protocol.on_data = None

    def _take(self) -> None:
        content = self._content
        while not content.is_eof() and content.exception() is None and self._answer.takes_chunks():
            chunk = content.read_nowait()
            if not chunk:
                return
            self._answer.write_chunk(chunk)
            self._exchange.waiting_since = time.monotonic()
        if not self._halted.done():
            self._halted.set_result(None)
