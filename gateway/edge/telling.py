"""What a waiting stream is told: its place and an estimate, as comments of its event stream.

A wait of a moment ends in a true status. After it 200 is out, and what must be refused is an event.
"""

import asyncio
import contextlib
import time
from dataclasses import dataclass

from gateway.edge.answer import Answer
from gateway.edge.queue import Turn
from gateway.edge.waiting import Waiters

MOMENT_SECONDS = 2.0
LOOK_SECONDS = 1.0
HEARTBEAT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Teller:
    """Tells one client while it waits."""

    answer: Answer
    waiters: Waiters

    async def stay(self, turn: Turn, ended: asyncio.Event) -> None:
        """Until the waiting has ended. Writes no faster than the client reads."""
        if not self.answer.has_started:
            await _wait(ended, MOMENT_SECONDS)
        said, said_at = "", 0.0
        while not ended.is_set():
            text, now = self._text(turn), time.monotonic()
            if text != said or now - said_at >= HEARTBEAT_SECONDS:
                await self._say(text, turn, ended)
                said, said_at = text, now
            await _wait(ended, LOOK_SECONDS)

    def _text(self, turn: Turn) -> str:
        position = self.waiters.queue.position(turn)
        seconds = self.waiters.estimate(turn)
        estimate = "" if seconds is None else f" estimate={seconds:.0f}s"
        return f"slotserve queue position={position}{estimate}"

    async def _say(self, text: str, turn: Turn, ended: asyncio.Event) -> None:
        """Write it, but do not keep an admission waiting for a client that does not read."""

        def end() -> None:
            ended.set()
            limit.reschedule(asyncio.get_running_loop().time())

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None) as limit:
                turn.on_end = end
                await self.answer.comment(text)
        turn.on_end = ended.set


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
