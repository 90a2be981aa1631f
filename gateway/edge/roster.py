"""Who else lives: the edges that share lanes and limits with this one, and its own identity."""

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

import redis.asyncio as redis

from gateway.edge.clock import EdgeClock
from gateway.edge.company import Company
from gateway.edge.valkey import BROKEN
from wire.edges import (
    EDGE_NEWS,
    EDGES,
    FREED_PREFIX,
    HEARTBEAT_SECONDS,
    LIVING,
    SILENT_AFTER_SECONDS,
    EdgeReport,
    encode_report,
)

logger = logging.getLogger(__name__)
_LISTEN_SECONDS = 10.0
_FORGET_SECONDS = 86_400.0  # a field of EDGES that nobody writes any more; hosts remember by file
_TIDY_SECONDS = 60.0
_MOST_SILENCE = 1.5 * HEARTBEAT_SECONDS  # that one heartbeat proves: Valkey may have been away

# KEYS: reports, living edges. ARGV: edge id, report, incarnation, its number, "1" when leaving,
# another field and report or two empty strings, ms after which what is not written any more is
# forgotten ("" when nobody is to tidy), news channel. Answers who had written the field before (""
# when that was this process or has left), the time in ms, and every living edge's last word.
_BEAT = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function read(payload)
  local is_json, raw = pcall(cjson.decode, payload or '')
  if is_json and type(raw) == 'table' then return raw end
  return {}
end
local me, number, is_leaving = ARGV[3], tonumber(ARGV[4]), ARGV[5] == '1'
local held = read(redis.call('HGET', KEYS[1], ARGV[1]))
local writer = type(held.incarnation) == 'string' and held.incarnation or ''
local is_ours = writer == me
local other = ''
if not is_ours and held.goodbye == false then other = writer end
local is_late = is_ours and type(held.number) == 'number' and held.number > number
if not is_late and not (is_leaving and other ~= '') then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end
if ARGV[6] ~= '' then redis.call('HSET', KEYS[1], ARGV[6], ARGV[7]) end
if is_leaving then
  redis.call('ZREM', KEYS[2], me)
  redis.call('PUBLISH', ARGV[9], 'leave ' .. me)
elseif redis.call('ZADD', KEYS[2], string.format('%.0f', now), me) == 1 then
  redis.call('PUBLISH', ARGV[9], 'join ' .. me)
end
if ARGV[8] ~= '' then
  local oldest = now - tonumber(ARGV[8])
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('(%.0f', oldest))
  local fields = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    local at = read(fields[i + 1]).at
    if type(at) ~= 'number' or at < oldest then redis.call('HDEL', KEYS[1], fields[i]) end
  end
end
return {other, string.format('%.0f', now), redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')}
"""


@dataclass(slots=True)
class _Seen:
    """Another edge: its last word, and for how long Valkey has answered us without a newer one."""

    score: float
    silence: float = 0.0


class Roster:
    """Tells the others of this edge, and hears of them: by word at once, by heartbeat for sure.

    An edge is gone when it says so, or when it has been silent for SILENT_AFTER_SECONDS in which
    Valkey did answer; so an emptied or absent Valkey makes nobody disappear.
    """

    def __init__(
        self, client: "redis.Redis", edge_id: str, clock: EdgeClock, company: Company
    ) -> None:
        self.incarnation = secrets.token_hex(8)
        self.on_change: Callable[[], None] = _nothing  # there are more or fewer edges
        self.on_news: Callable[[], None] = _nothing  # one has joined or left just now
        self.on_freed: Callable[[str], None] = _nothing_of
        self._company = company
        self._client = client
        self._script = client.register_script(_BEAT)
        self._edge_id = edge_id
        self._clock = clock
        self._others: dict[str, _Seen] = {}
        self._beaten_at: float | None = None
        self._tidied_at = clock.monotonic()
        self._number = 0
        self._twin_seen_at: float | None = None
        self._own_field_stands = False

    @property
    def others(self) -> list[str]:
        """Incarnations of the other living edges."""
        return list(self._others)

    @property
    def has_twin(self) -> bool:
        """Whether another living process writes under this edge's id."""
        return self._twin_seen_at is not None

    async def beat(self, report: EdgeReport) -> None:
        """Write the report and read who lives, in one round trip."""
        self._number += 1
        named = replace(report, incarnation=self.incarnation, number=self._number)
        stands = self.has_twin and not report.goodbye
        arguments = self._arguments(named, stands=stands)
        writer, at_ms, words = await self._script(keys=[EDGES, LIVING], args=arguments)
        self._own_field_stands = stands
        now = self._clock.monotonic()
        self._note_twin(writer.decode(), now)
        self._note_living(_scores(words), float(at_ms), now)
        self._beaten_at = now

    async def listen(self) -> None:
        """Hear for ever who joins and leaves, and which lanes have become free."""
        freed = FREED_PREFIX + self.incarnation
        while True:
            try:
                async with self._client.pubsub(ignore_subscribe_messages=True) as channel:
                    await channel.subscribe(EDGE_NEWS, freed)
                    while True:
                        message = await channel.get_message(timeout=_LISTEN_SECONDS)
                        if message is not None:
                            self._hear(message["channel"].decode(), message["data"].decode())
            except BROKEN:
                await asyncio.sleep(HEARTBEAT_SECONDS)

    def _hear(self, channel: str, words: str) -> None:
        if channel != EDGE_NEWS:
            self.on_freed(words)
            return
        verb, _, name = words.partition(" ")
        if name == self.incarnation:
            return
        if verb == "join":
            self._others.setdefault(name, _Seen(0.0))
        else:
            self._others.pop(name, None)
        self._count()
        self.on_news()

    def _arguments(self, report: EdgeReport, *, stands: bool) -> list[str | bytes | int]:
        payload = encode_report(report)
        leaving = "1" if report.goodbye else ""
        return [
            *(self._edge_id, payload, self.incarnation, report.number, leaving),
            *self._own_field(report, stands=stands),
            self._forget_ms(),
            EDGE_NEWS,
        ]

    def _own_field(self, report: EdgeReport, *, stands: bool) -> tuple[str, str | bytes]:
        """While a twin overwrites this edge's field, a second one keeps its counts in sight."""
        if not stands and not self._own_field_stands:
            return "", ""
        payload = encode_report(replace(report, goodbye=not stands))
        return f"{self._edge_id}~{self.incarnation}", payload

    def _forget_ms(self) -> str | int:
        now = self._clock.monotonic()
        if now - self._tidied_at < _TIDY_SECONDS:
            return ""
        self._tidied_at = now
        return int(_FORGET_SECONDS * 1000)

    def _note_twin(self, writer: str, now: float) -> None:
        """Whoever writes our field after us lives, and has our id."""
        if writer and self._beaten_at is not None:
            if self._twin_seen_at is None:
                logger.error(
                    "another gateway writes its reports as %r too: give each its own "
                    "SLOTSERVE_EDGE_ID",
                    self._edge_id,
                )
            self._twin_seen_at = now
        elif self.has_twin and now - (self._twin_seen_at or 0.0) > SILENT_AFTER_SECONDS:
            self._twin_seen_at = None
            logger.info("the edge id %r belongs to this gateway alone again", self._edge_id)

    def _note_living(self, scores: dict[str, float], at_ms: float, now: float) -> None:
        passed = 0.0 if self._beaten_at is None else min(now - self._beaten_at, _MOST_SILENCE)
        fresh = at_ms - SILENT_AFTER_SECONDS * 1000
        for name, score in scores.items():
            seen = self._others.get(name)
            if seen is not None and score != seen.score:
                seen.score, seen.silence = score, -passed
            elif seen is None and score >= fresh and name != self.incarnation:
                self._others[name] = _Seen(score, -passed)
        for name, seen in list(self._others.items()):
            seen.silence += passed
            if seen.silence >= SILENT_AFTER_SECONDS:
                del self._others[name]
        self._count()

    def _count(self) -> None:
        edges = 1 + len(self._others)
        if edges == self._company.edges:
            return
        logger.info("gateways that share lanes and limits: %d, this one included", edges)
        self._company.edges = edges
        self._company.is_alone = edges == 1
        self.on_change()


def _scores(flat: list[bytes]) -> dict[str, float]:
    return {name.decode(): float(score) for name, score in zip(flat[::2], flat[1::2], strict=True)}


def _nothing() -> None:
    return


def _nothing_of(_: str) -> None:
    return
