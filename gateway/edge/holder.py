"""Keeps the newest route table that Valkey has shown, and never a lesser one.

The head is read on each word of TABLE_CHANNEL and each second, its signature checked, and taken
only when its (version, confirmed_at) is higher. Parts are read when their digest changed. A value
that is missing, altered or older never replaces what is held.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import redis.asyncio as redis

from gateway.edge.clock import EdgeClock
from gateway.edge.pauses import pause
from gateway.edge.table import (
    CATALOGUE_PART,
    LANE_PREFIX,
    MAINTENANCE_PART,
    PRESETS_PART,
    SHARES_PART,
    SLOT_TOKENS_PART,
    TOKENS_PART,
    Head,
    Table,
    TableError,
    decode_catalogue,
    decode_head,
    decode_lane,
    decode_maintenance,
    decode_presets,
    decode_shares,
    decode_slot_tokens,
    decode_tokens,
    digest_of,
    with_guests,
)
from gateway.edge.valkey import BROKEN
from wire.edges import TABLE_CHANNEL, TABLE_HEAD, TABLE_PARTS
from wire.sealing import Sealer

logger = logging.getLogger(__name__)
READ_EVERY_SECONDS = 1.0
_LISTEN_SECONDS = 10.0
_LARGE_PART_BYTES = 32_768  # parsed in a thread, so that no stream waits for it
_TORN_READS = 3  # a head may be replaced between its reading and that of its parts
_DECODERS: Mapping[str, Callable[[bytes], Any]] = MappingProxyType(
    {
        TOKENS_PART: decode_tokens,
        SLOT_TOKENS_PART: decode_slot_tokens,
        PRESETS_PART: decode_presets,
        CATALOGUE_PART: decode_catalogue,
        SHARES_PART: decode_shares,
        MAINTENANCE_PART: decode_maintenance,
    }
)


class TableHolder:
    """The table in force, `table`; None until there is one. `on_table` hears of each new one."""

    def __init__(
        self,
        client: "redis.Redis",
        sealer: Sealer,
        clock: EdgeClock,
        on_table: Callable[[Table], None],
    ) -> None:
        self.table: Table | None = None
        self._client = client
        self._sealer = sealer
        self._clock = clock
        self._on_table = on_table
        self._digests: dict[str, str] = {}
        self._parsed: dict[str, Any] = {}
        self._reading = asyncio.Lock()
        self._wake = asyncio.Event()
        self._trouble = ""

    async def run(self) -> None:
        """Read for ever: on each word of a publisher, and each second."""
        while True:
            self._wake.clear()
            await self.refresh()
            await pause(self._wake, READ_EVERY_SECONDS)

    async def refresh(self) -> None:
        """Read once, if Valkey answers; says in the log when it stops or starts answering."""
        try:
            async with self._reading:
                for _ in range(_TORN_READS):
                    if await self._read():
                        break
            self._note("")
        except BROKEN as error:
            self._note(f"Valkey does not answer: {error}")
        except TableError as error:
            self._note(f"{error}; what is held stays in force")

    async def listen(self) -> None:
        """Hear for ever what publishers say. A task of its own: a group cancels its tasks once,
        which redis-py may swallow."""
        while True:
            try:
                async with self._client.pubsub() as channel:
                    await channel.subscribe(TABLE_CHANNEL)
                    while True:
                        if await channel.get_message(timeout=_LISTEN_SECONDS):
                            self._wake.set()
            except BROKEN:
                await asyncio.sleep(READ_EVERY_SECONDS)

    async def _read(self) -> bool:
        """Whether what Valkey holds is now held here too; False when it changed underneath."""
        asked = self._clock.moment()
        pipeline = self._client.pipeline(transaction=False)
        pipeline.time()
        pipeline.hmget(TABLE_HEAD, ["payload", "signature"])
        (seconds, microseconds), (payload, signature) = await pipeline.execute()
        was_in_doubt = self._clock.is_in_doubt
        self._clock.sync(seconds + microseconds / 1e6, asked)
        if was_in_doubt and not self._clock.is_in_doubt and self.table is not None:
            self._on_table(self.table)  # whoever waits or runs is judged by the new time
        if payload is None or signature is None:
            return True
        head = decode_head(payload, signature.decode("ascii", "ignore"), self._sealer)
        if not self._is_newer(head):
            return True
        changed = [name for name, digest in head.parts.items() if self._digests.get(name) != digest]
        parsed = await self._read_parts(head, changed)
        if parsed is None:
            return False
        self._take(head, parsed)
        return True

    def _is_newer(self, head: Head) -> bool:
        held = self.table
        return held is None or (head.version, head.confirmed_at) > (held.version, held.confirmed_at)

    async def _read_parts(self, head: Head, changed: list[str]) -> dict[str, Any] | None:
        """The parts parsed, or None when one is missing or not what the head says."""
        if not changed:
            return {}
        payloads = await self._client.hmget(TABLE_PARTS, changed)
        parsed: dict[str, Any] = {}
        for name, payload in zip(changed, payloads, strict=True):
            if payload is None:
                return None
            if len(payload) > _LARGE_PART_BYTES:
                value = await asyncio.to_thread(_parse, name, payload, head.parts[name])
            else:
                value = _parse(name, payload, head.parts[name])
                await asyncio.sleep(0)
            if value is None:
                return None
            parsed[name] = value
        return parsed

    def _take(self, head: Head, parsed: dict[str, Any]) -> None:
        """Put the new table in force; a head that only confirms keeps the parts it has."""
        self._clock.take_offset(head.clock_offset)
        is_same = not parsed and head.parts.keys() == self._parsed.keys()
        if self.table is not None and is_same:
            confirmed = {"version": head.version, "confirmed_at": head.confirmed_at}
            self.table = replace(self.table, **confirmed)  # type: ignore[arg-type]
            return
        self._parsed = {name: parsed.get(name, self._parsed.get(name)) for name in head.parts}
        self._digests = dict(head.parts)
        shares = self._parsed.get(SHARES_PART, {})
        self.table = Table(
            version=head.version,
            confirmed_at=head.confirmed_at,
            tokens={
                **self._parsed.get(SLOT_TOKENS_PART, {}),
                **self._parsed.get(TOKENS_PART, {}),
            },
            presets=self._parsed.get(PRESETS_PART, {}),
            catalogue=self._parsed.get(CATALOGUE_PART, {}),
            closures=self._parsed.get(MAINTENANCE_PART, {}),
            lanes={
                lane.slug: with_guests(lane, shares)
                for name, lane in self._parsed.items()
                if name.startswith(LANE_PREFIX)
            },
        )
        self._on_table(self.table)

    def _note(self, trouble: str) -> None:
        """Log a trouble when it begins and when it is over, not each second."""
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if trouble:
            logger.warning("route table: %s", trouble)
        else:
            logger.info("route table: readable again")


def _parse(name: str, payload: bytes | str, digest: str) -> Any:
    """A part, or None when it has been replaced; TableError when its format is another."""
    if not isinstance(payload, bytes) or digest_of(payload) != digest:
        return None
    try:
        if name in _DECODERS:
            return _DECODERS[name](payload)
        return decode_lane(payload) if name.startswith(LANE_PREFIX) else payload
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise TableError(f"the route table's part {name} is of another format: {error}") from error
