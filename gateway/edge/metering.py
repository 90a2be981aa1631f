"""Usage: one record for each request, on its way to Valkey or into files, off the request's path.

A record waits in memory for _PAUSE_SECONDS, and for up to _SEND_SECONDS more while Valkey is asked:
that is what a killed edge loses. When Valkey does not answer, or its stream is as long as it may
be, records go into this edge's files, and from there to Valkey when it can take them, oldest first.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import redis.asyncio as redis

from gateway.edge.pauses import pause
from gateway.edge.usage_spool import UsageSpool
from gateway.edge.valkey import BROKEN
from wire.edges import USAGE_STREAM
from wire.usage import (
    FIELD_OF_MANY,
    STREAM_LENGTH,
    USAGE_WAITING,
    Usage,
    encode_line,
    pack_lines,
)

logger = logging.getLogger(__name__)
BUFFER_RECORDS = 10_000
_BATCH_RECORDS = 1000
_PAUSE_SECONDS = 0.2  # records gather for so long before they are sent
_BREATH_SECONDS = 0.005  # between batches, for requests
_SEND_SECONDS = 1.0
_RETRY_SECONDS = 1.0
_LAST_SECONDS = 2.0
_LOOK_SECONDS = 60.0  # between looks for what other edges have left
_T = TypeVar("_T")
# Adds one entry of as many of the lines as the stream has room for, and says how many.
_ADD = f"""
local entries, waiting = redis.call('XLEN', KEYS[1]), 0
if entries > 0 then
  waiting = math.max(entries, tonumber(redis.call('GET', KEYS[2])) or 0)
end
local count, lines = tonumber(ARGV[2]), ARGV[3]
local room = tonumber(ARGV[1]) - waiting
if room <= 0 then return 0 end
if room < count then
  local last = 0
  for _ = 1, room do last = string.find(lines, '\\n', last + 1, true) end
  count, lines = room, string.sub(lines, 1, last - 1)
end
redis.call('XADD', KEYS[1], '*', '{FIELD_OF_MANY}', lines)
redis.call('SET', KEYS[2], waiting + count)
return count
"""


class UsageSink:
    """Holds records until Valkey or a file has them. When it is full the oldest goes, counted."""

    def __init__(self, client: "redis.Redis", spool: UsageSpool) -> None:
        self._add = client.register_script(_ADD)
        self._spool = spool
        self._disk = ThreadPoolExecutor(1, "usage")
        self._lines: deque[bytes] = deque()
        self._filled = asyncio.Event()
        self._dropped = 0
        self._is_dropping = False
        self._is_disk_broken = False
        self._try_at = 0.0  # monotonic: Valkey took nothing at the last try
        self._look_at = 0.0

    @property
    def dropped(self) -> int:
        """Records that are lost."""
        return self._dropped + self._spool.torn

    @property
    def buffered(self) -> int:
        """Records in memory."""
        return len(self._lines)

    @property
    def spooled_bytes(self) -> int:
        """Of the records in files."""
        return self._spool.bytes

    def put(self, usage: Usage) -> None:
        """Take one record; never waits."""
        if len(self._lines) >= BUFFER_RECORDS:
            self._lines.popleft()
            self._dropped += 1
            if not self._is_dropping:
                logger.error("usage records are lost: neither Valkey nor the disk takes them")
            self._is_dropping = True
        self._lines.append(encode_line(usage))
        self._filled.set()

    async def run(self) -> None:
        """Send for ever."""
        while True:
            await self._look()
            if self._spool.is_empty:
                await pause(self._filled, _LOOK_SECONDS)
            await asyncio.sleep(_PAUSE_SECONDS)
            self._filled.clear()
            await self._send_all()
            if self._is_dropping and not self._lines:
                self._is_dropping = False
                logger.error("usage records are kept again; lost so far: %d", self.dropped)

    async def flush(self) -> None:
        """Send what is left in memory, or write it to the file, and close; count what is lost."""
        self._try_at = 0.0
        try:
            async with asyncio.timeout(_LAST_SECONDS):
                await self._send_all(is_last=True)
                await self._in_thread(self._spool.close)
        except BROKEN as error:
            logger.warning("usage records could not be kept (%s)", error)
        self._disk.shutdown(wait=False)
        self._dropped += len(self._lines)
        if self._lines:
            logger.error("usage records are lost at the end: %d", len(self._lines))
        self._lines.clear()

    async def _look(self) -> None:
        """Take over files that nobody owns."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + _LOOK_SECONDS
        try:
            await self._in_thread(self._spool.take_over)
        except OSError as error:
            logger.warning("the folder of usage records cannot be read (%s)", error)

    async def _send_all(self, *, is_last: bool = False) -> None:
        """To Valkey in the order of arrival; what it does not take now goes to the file."""
        while self._lines and self._spool.is_empty and self._is_time():
            await self._move(_BATCH_RECORDS, self._send)
        if self._lines:
            await self._move(BUFFER_RECORDS, self._write)
        while not (is_last or self._spool.is_empty) and self._is_time():
            await self._replay()
            await asyncio.sleep(_BREATH_SECONDS)
            if self._lines:
                await self._move(BUFFER_RECORDS, self._write)

    async def _move(self, most: int, take: Callable[[list[bytes]], Awaitable[int]]) -> None:
        """Hand over the oldest records; those that were not taken stay, whatever happens."""
        batch = [self._lines.popleft() for _ in range(min(most, len(self._lines)))]
        taken = 0
        try:
            taken = await take(batch)
        finally:
            self._lines.extendleft(reversed(batch[taken:]))

    async def _replay(self) -> None:
        """The file's oldest records to Valkey."""
        try:
            batch = await self._in_thread(lambda: self._spool.oldest(_BATCH_RECORDS))
            taken = await self._send(batch) if batch else 0
            if taken:
                await self._in_thread(lambda: self._spool.sent(batch[:taken]))
        except OSError as error:
            self._note_disk(error)
            self._try_at = time.monotonic() + _RETRY_SECONDS
        if self._spool.is_empty:
            logger.info("the usage records that waited in files are sent")

    async def _send(self, batch: list[bytes]) -> int:
        """How many of them Valkey has taken."""
        taken = 0
        try:
            async with asyncio.timeout(_SEND_SECONDS):
                keys, lines = [USAGE_STREAM, USAGE_WAITING], pack_lines(batch)
                taken = int(await self._add(keys=keys, args=[STREAM_LENGTH, len(batch), lines]))
        except BROKEN as error:
            logger.debug("usage records wait (%s)", error)
        if taken < len(batch):
            self._try_at = time.monotonic() + _RETRY_SECONDS
        return taken

    async def _write(self, batch: list[bytes]) -> int:
        """How many of them are in the file."""
        was_empty = self._spool.is_empty
        try:
            count = await self._in_thread(lambda: self._spool.append(batch))
        except OSError as error:
            self._note_disk(error)
            return 0
        self._is_disk_broken = False
        if count and was_empty:
            logger.warning("usage records go to files: Valkey does not take them")
        return count

    def _is_time(self) -> bool:
        return time.monotonic() >= self._try_at

    def _note_disk(self, error: OSError) -> None:
        if not self._is_disk_broken:
            logger.error("usage records cannot be written to the disk or read there (%s)", error)
        self._is_disk_broken = True

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._disk, work)
