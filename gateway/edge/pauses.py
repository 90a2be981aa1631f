"""Waiting for an event, but not for ever; and for the end of what runs for ever."""

import asyncio
import contextlib
from collections.abc import Iterable

_CANCEL_AGAIN_SECONDS = 0.2


async def pause(event: asyncio.Event, seconds: float) -> None:
    """Until it is set, or so many seconds are over."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


async def end_all(tasks: Iterable["asyncio.Task[None]"]) -> None:
    """Cancel until all have ended: redis-py was seen to swallow a cancellation in a pipeline."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=_CANCEL_AGAIN_SECONDS)
