"""What earlier or departed edges have left of rate limits in Valkey, for the one that goes on."""

import asyncio

import redis.asyncio as redis

from gateway.edge.buckets import Bucket
from gateway.edge.clock import EdgeClock
from gateway.edge.limits import Limits
from gateway.edge.valkey import BROKEN
from wire.edges import RATE_PREFIX

_AGAIN_SECONDS = 1.0
_AT_ONCE = 500
_MOST = 50_000  # buckets: no more people than that have called within minutes


class Heritage:
    """Reads it when `wanted`: at the start, and when this edge becomes alone."""

    def __init__(self, client: "redis.Redis", clock: EdgeClock, limits: Limits) -> None:
        self.wanted = asyncio.Event()
        self.wanted.set()
        self._client = client
        self._clock = clock
        self._limits = limits

    async def run(self) -> None:
        """Read for ever, whenever it is wanted."""
        while True:
            await self.wanted.wait()
            try:
                found = await self._read()
            except BROKEN:
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            self.wanted.clear()
            self._limits.inherit(found)

    async def _read(self) -> dict[str, Bucket]:
        found: dict[str, Bucket] = {}
        names: list[bytes] = []
        async for name in self._client.scan_iter(match=f"{RATE_PREFIX}*", count=_AT_ONCE):
            names.append(name)
            if len(names) >= _AT_ONCE:
                found |= await self._read_some(names)
                names = []
            if len(found) >= _MOST:
                break
        return found | await self._read_some(names)

    async def _read_some(self, names: list[bytes]) -> dict[str, Bucket]:
        async with self._client.pipeline(transaction=False) as pipeline:
            for name in names:
                pipeline.hmget(name, ["used", "at"])
            values = await pipeline.execute()
        ahead = self._clock.valkey_now() - self._clock.monotonic()
        return {
            name.decode().removeprefix(RATE_PREFIX): Bucket(float(used), float(at) - ahead)
            for name, (used, at) in zip(names, values, strict=True)
            if used is not None and at is not None
        }
