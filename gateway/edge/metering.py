"""Usage: one record for each request, through a bounded buffer, off the request's path."""

import asyncio
import logging
from collections import deque
from itertools import islice

import redis.asyncio as redis
from redis.exceptions import RedisError

from wire.edges import USAGE_STREAM
from wire.usage import STREAM_LENGTH, Usage, encode_usage

logger = logging.getLogger(__name__)
BUFFER_RECORDS = 10_000
_BATCH_RECORDS = 200
_PAUSE_SECONDS = 0.2  # records gather for so long before they are sent
_RETRY_SECONDS = 1.0
_LAST_SECONDS = 2.0
_BROKEN = (RedisError, OSError, TimeoutError)


class UsageSink:
    """Holds records until Valkey has them. When it is full the oldest goes, and is counted."""

    def __init__(self, client: "redis.Redis") -> None:
        self.dropped = 0
        self._client = client
        self._buffer: deque[Usage] = deque()
        self._filled = asyncio.Event()

    def put(self, usage: Usage) -> None:
        """Take one record; never waits."""
        if len(self._buffer) >= BUFFER_RECORDS:
            self._buffer.popleft()
            self.dropped += 1
        self._buffer.append(usage)
        self._filled.set()

    async def run(self) -> None:
        """Send for ever."""
        while True:
            await self._filled.wait()
            await asyncio.sleep(_PAUSE_SECONDS)
            try:
                await self._send_all()
            except _BROKEN:
                await asyncio.sleep(_RETRY_SECONDS)

    async def flush(self) -> None:
        """Send what is left, if Valkey answers in time; count what must be dropped."""
        try:
            async with asyncio.timeout(_LAST_SECONDS):
                await self._send_all()
        except _BROKEN:
            self.dropped += len(self._buffer)
            logger.warning("%d usage records are lost: Valkey does not answer", self.dropped)

    async def _send_all(self) -> None:
        while self._buffer:
            batch = list(islice(self._buffer, _BATCH_RECORDS))
            dropped = self.dropped
            pipeline = self._client.pipeline(transaction=False)
            for usage in batch:
                pipeline.xadd(USAGE_STREAM, encode_usage(usage), maxlen=STREAM_LENGTH)  # type: ignore[arg-type]
            await pipeline.execute()
            for _ in range(len(batch) - (self.dropped - dropped)):
                self._buffer.popleft()
        self._filled.clear()
