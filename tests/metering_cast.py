"""What tests of usage records share: the records in the stream."""

import asyncio
from typing import Any

import redis.asyncio as redis

from wire.edges import USAGE_STREAM
from wire.usage import Usage, decode_entry


async def records(client: "redis.Redis", count: int, seconds: float = 20) -> list[Usage]:
    """Of the stream, once there are so many."""
    async with asyncio.timeout(seconds):
        while len(found := await in_stream(client)) < count:
            await asyncio.sleep(0.01)
    return found


async def in_stream(client: "redis.Redis") -> list[Usage]:
    """Those of this moment."""
    entries: Any = await client.xrange(USAGE_STREAM)
    return [usage for _, fields in entries for usage in decode_entry(fields) if usage is not None]
