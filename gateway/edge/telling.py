"""What a waiting stream is told: its place and an estimate, as comments of its event stream.

A wait of a moment ends in a true status. After it 200 is out, and what must be refused is an event.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from gateway.edge.answer import Answer
from gateway.edge.pauses import pause
from gateway.edge.queue import Turn
from gateway.edge.waiting import Waiters

MOMENT_SECONDS = 2.0
LOOK_SECONDS = 1.0
HEARTBEAT_SECONDS = 10.0
_MOST_BYTES = 262_144


@dataclass(frozen=True, slots=True)
class Teller:
    """Tells one client while it waits."""

    answer: Answer
    waiters: Waiters
    is_stream: Callable[[], bool]  # asked only when there is something to tell

    async def stay(self, turn: Turn, ended: asyncio.Event) -> None:
        """Until the waiting has ended. Writes no faster than the client reads."""
        if not self.answer.has_started:
            await pause(ended, MOMENT_SECONDS)
        if not ended.is_set() and not self.answer.has_started and not self.is_stream():
            await ended.wait()
        said, said_at = "", 0.0
        while not ended.is_set():
            text, now = self._text(turn), time.monotonic()
            if text != said or now - said_at >= HEARTBEAT_SECONDS:
                await self._say(text, turn, ended)
                said, said_at = text, now
            await pause(ended, LOOK_SECONDS)

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


def asks_for_stream(body: bytes) -> bool:
    """Whether this body asks for an event stream. A request that waits for long is read again."""
    if len(body) > _MOST_BYTES:
        return False  # reading it would hold others up: it waits without a word
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(value, dict) and value.get("stream") is True
