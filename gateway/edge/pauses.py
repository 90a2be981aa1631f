"""Waiting for an event, but not for ever."""

import asyncio
import contextlib


async def pause(event: asyncio.Event, seconds: float) -> None:
    """Until it is set, or so many seconds are over."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
