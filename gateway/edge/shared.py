"""What several edges share: one script in Valkey answers many requests in one round trip.

All that comes up while a call is in flight goes into the next one. An edge tells what it truly
holds and uses with each call, so whatever was lost, doubled or late is mended by the next.
"""

import asyncio
import logging
from typing import Any

import redis.asyncio as redis

from gateway.edge.company import Company, Question
from gateway.edge.limits import Limits
from gateway.edge.roster import Roster
from gateway.edge.slots import Slots
from gateway.edge.valkey import BROKEN
from wire.edges import EDGE_NEWS, FREED_PREFIX, LIVING, SILENT_AFTER_SECONDS

logger = logging.getLogger(__name__)
ANSWER_SECONDS = 0.05
CONNECT_SECONDS = 2.0  # off the request path, after Valkey was away
AGAIN_SECONDS = 0.2

# KEYS: living edges, a hash per lane, a hash per bucket. ARGV: this edge, ms after which an edge is
# silent, news channel, prefix of the channels of freed lanes; number of other edges and their
# names; number of lanes and per lane: slug, held, wanted, slots; number of buckets and per bucket:
# limit, "1" when requests are counted, untold, used; number of requests and per request: number of
# its buckets and their places. Answers per lane: granted, how many are held beyond its slots, and
# how many of these are news; per bucket: used; per request: place of the bucket in its way or 0,
# and ms.
_SCRIPT = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local place, key = 0, 1
local function word() place = place + 1; return ARGV[place] end
local function number() return tonumber(word()) end
local function next_key() key = key + 1; return KEYS[key] end

local me, silent, news, freed = word(), number(), word(), word()
local now_ms = string.format('%.0f', now * 1000)
if redis.call('ZADD', KEYS[1], now_ms, me) == 1 then redis.call('PUBLISH', news, 'join ' .. me) end
local alive = {}
local since = string.format('%.0f', now * 1000 - silent)
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], since, '+inf')) do alive[name] = true end
local others = number()
local is_emptied = false
for _ = 1, others do
  local name = word()
  alive[name] = true
  if not redis.call('ZSCORE', KEYS[1], name) then is_emptied = true end
end

local function lane()
  local slug, held, wanted, slots, name = word(), number(), number(), number(), next_key()
  local elsewhere, told, waiting = 0, 0, {}
  local fields = redis.call('HGETALL', name)
  for i = 1, #fields, 2 do
    local who = fields[i]
    if string.sub(who, 1, 1) == '?' then waiting[#waiting + 1] = string.sub(who, 2)
    elseif who == me then told = tonumber(fields[i + 1])
    elseif alive[who] then elsewhere = elsewhere + tonumber(fields[i + 1])
    else redis.call('HDEL', name, who) end
  end
  local most = slots - elsewhere
  if is_emptied then most = math.min(most, math.max(1, math.floor(slots / (others + 1)))) end
  local granted = math.max(0, math.min(wanted, most - held))
  local holds = held + granted
  if holds > 0 then redis.call('HSET', name, me, holds) else redis.call('HDEL', name, me) end
  if granted < wanted then redis.call('HSET', name, '?' .. me, 1) end
  if elsewhere + holds < slots then
    for _, who in ipairs(waiting) do
      redis.call('HDEL', name, '?' .. who)
      if who ~= me then redis.call('PUBLISH', freed .. who, slug) end
    end
  end
  redis.call('PEXPIRE', name, 60000)
  local over = math.max(0, elsewhere + holds - slots)
  return {granted, over, math.max(0, over - math.max(0, elsewhere + told - slots))}
end

local function bucket()
  local one = {name = next_key(), limit = number(), is_counted = word() == '1'}
  local untold, used = number(), number()
  local held = redis.call('HMGET', one.name, 'used', 'at')
  if held[1] and held[2] then
    local gained = math.max(0, now - tonumber(held[2])) * one.limit / 60
    used = math.max(0, tonumber(held[1]) - gained) + untold
  end
  one.used = used
  return one
end

local function wait_of(one)
  if one.limit < 1 then return 60 end
  local over = one.used + 1 - one.limit
  if over > 0.000001 then return over * 60 / one.limit end
  return 0
end

local function request(buckets)
  local asked, worst, longest = {}, 0, 0
  for i = 1, number() do
    asked[i] = number()
    local seconds = wait_of(buckets[asked[i]])
    if seconds > longest then worst, longest = asked[i], seconds end
  end
  if worst == 0 then
    for _, i in ipairs(asked) do
      if buckets[i].is_counted then buckets[i].used = buckets[i].used + 1 end
    end
  end
  return {worst, math.ceil(longest * 1000)}
end

local function keep(one)
  if one.used <= 0 or one.limit < 1 then
    redis.call('DEL', one.name)
  else
    redis.call('HSET', one.name, 'used', string.format('%.9f', one.used),
      'at', string.format('%.6f', now))
    redis.call('PEXPIRE', one.name, string.format('%.0f', one.used * 60000 / one.limit + 1000))
  end
  return string.format('%.9f', one.used)
end

local lanes, buckets, requests, used = {}, {}, {}, {}
for i = 1, number() do lanes[i] = lane() end
for i = 1, number() do buckets[i] = bucket() end
for i = 1, number() do requests[i] = request(buckets) end
for i = 1, #buckets do used[i] = keep(buckets[i]) end
return {lanes, used, requests}
"""


class Shared:
    """Asks for slots and limits while others live, one call at a time."""

    def __init__(
        self, client: "redis.Redis", roster: Roster, company: Company, slots: Slots, limits: Limits
    ) -> None:
        self._script = client.register_script(_SCRIPT)
        self._roster = roster
        self._company = company
        self._slots = slots
        self._limits = limits
        self._is_said = False  # that limits are divided, in the log

    async def run(self) -> None:
        """Ask for ever, whenever something is wanted."""
        self._company.wanted.set()  # connect before anybody needs it
        pause = 0.0
        while True:
            await self._company.wanted.wait()
            self._company.wanted.clear()
            if await self.ask():
                pause = 0.0
                continue
            await asyncio.sleep(pause)
            pause = AGAIN_SECONDS
            if not self._company.is_alone:
                self._company.wanted.set()

    async def ask(self) -> bool:
        """One call; whether it was answered. Without an answer everybody decides alone.

        After Valkey was away the first call only says what is held: such calls may be carried out
        late and more than once.
        """
        was_away = self._company.is_away
        slots = self._slots.question()
        limits = self._limits.question(is_bare=was_away)
        is_answered = False
        try:
            async with asyncio.timeout(CONNECT_SECONDS if was_away else ANSWER_SECONDS):
                answer = await self._call(slots, limits)
            is_answered = True
        except BROKEN as error:
            self._note_away(error)
        finally:
            self._company.is_away = not is_answered
            if not is_answered:
                self._slots.give_up()
                self._limits.give_up()
        if is_answered:
            self._take(answer, was_away=was_away)
        return is_answered

    async def finish(self) -> None:
        """Leave what has been used for those who come after."""
        self.tell_all()
        self._company.is_away = False
        await self.ask()

    async def _call(self, slots: Question, limits: Question) -> list[list[Any]]:
        others = self._roster.others
        silent = int(SILENT_AFTER_SECONDS * 1000)
        keys = [LIVING, *slots.keys, *limits.keys]
        arguments: list[str | int | float] = [
            self._roster.incarnation,
            silent,
            EDGE_NEWS,
            FREED_PREFIX,
            len(others),
            *others,
            *slots.arguments,
            *limits.arguments,
        ]
        answer: list[list[Any]] = await self._script(keys=keys, args=arguments)
        return answer

    def _take(self, answer: list[list[Any]], *, was_away: bool) -> None:
        lanes, used, requests = answer
        self._slots.answer(lanes)
        self._limits.answer(used, requests)
        if was_away:
            self._note_answer()
            self.tell_all()

    def tell_all(self) -> None:
        """Tell with the next call what this edge holds and has used, whether it changed or not."""
        self._slots.tell_all()
        self._limits.tell_all()
        self._company.wanted.set()

    def _note_answer(self) -> None:
        if self._is_said:
            self._is_said = False
            logger.info("Valkey answers: slots and limits are shared again")

    def _note_away(self, error: Exception) -> None:
        if self._is_said or self._company.is_alone:
            return
        self._is_said = True
        edges = self._company.edges
        logger.warning(
            "Valkey does not answer in time (%s): slots and limits are divided by %d gateways",
            str(error) or "no answer",
            edges,
        )
