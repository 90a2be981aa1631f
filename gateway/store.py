"""The route table in Valkey: one script stores a head and its parts, or nothing."""

import math
from collections.abc import Mapping

from gateway.edge.table import Head, encode_head
from lanes import clock, ticks
from wire.edges import TABLE_CHANNEL, TABLE_HEAD, TABLE_PARTS
from wire.sealing import Sealer

# KEYS: head, parts. ARGV: version, confirmed_at, payload, signature, channel, whether the number is
# new, then name and bytes of parts. Answers "stored", "outranked", or "missing" with the parts that
# must come along: those that Valkey does not hold under the digest that the new head gives them. So
# an emptied Valkey gets everything, and an unchanged table costs its head alone. An emptied one has
# forgotten what edges hold: if the clock has been set back since, they take a new number alone.
_STORE = """
local held = redis.call('HMGET', KEYS[1], 'version', 'confirmed_at', 'payload')
local version, confirmed = tonumber(held[1] or ''), tonumber(held[2] or '')
local new_version, new_confirmed = tonumber(ARGV[1]), tonumber(ARGV[2])
if version and confirmed then
  if version > new_version or (version == new_version and confirmed >= new_confirmed) then
    return {'outranked'}
  end
elseif ARGV[6] == '0' then
  return {'outranked'}
end
local known = {}
local is_json, head = pcall(cjson.decode, held[3] or '')
if is_json and type(head) == 'table' and type(head.parts) == 'table' then known = head.parts end
local wanted = cjson.decode(ARGV[3]).parts
local given = {}
for i = 7, #ARGV, 2 do given[ARGV[i]] = ARGV[i + 1] end
local answer = {'missing'}
for name, digest in pairs(wanted) do
  local is_held = known[name] == digest and redis.call('HEXISTS', KEYS[2], name) == 1
  if not given[name] and not is_held then answer[#answer + 1] = name end
end
if #answer > 1 then return answer end
for name, bytes in pairs(given) do redis.call('HSET', KEYS[2], name, bytes) end
for _, name in ipairs(redis.call('HKEYS', KEYS[2])) do
  if not wanted[name] then redis.call('HDEL', KEYS[2], name) end
end
redis.call('HSET', KEYS[1], 'version', ARGV[1], 'confirmed_at', ARGV[2],
  'payload', ARGV[3], 'signature', ARGV[4])
redis.call('PUBLISH', ARGV[5], ARGV[1])
return {'stored'}
"""
LOOKS = 5  # at the clocks, at most
CLOSE_SECONDS = 0.1
ATTEMPTS = 3  # another publisher may store between "missing" and the answer to it


def store(head: Head, parts: Mapping[str, bytes], sealer: Sealer, *, is_new: bool) -> bool:
    """Store a table, unless Valkey holds a higher (version, confirmed_at), or none and the number
    is not a new one; says whether it did.

    Raises redis.RedisError when Valkey does not answer.
    """
    payload, signature = encode_head(head, sealer)
    script = ticks.valkey().register_script(_STORE)
    names: list[str] = []
    for _ in range(ATTEMPTS):
        given: list[str | bytes] = [each for name in names for each in (name, parts[name])]
        first: list[str | bytes] = [str(head.version), repr(head.confirmed_at), payload]
        arguments = [*first, signature, TABLE_CHANNEL, int(is_new), *given]
        answer = script(keys=[TABLE_HEAD, TABLE_PARTS], args=arguments)
        if answer[0] != b"missing":
            return bool(answer[0] == b"stored")
        names = [name.decode() for name in answer[1:]]
    return False


def clock_offset() -> float:
    """The database's clock minus Valkey's, in seconds; RedisError when Valkey does not answer.

    Each look says between which two it lies, the sooner the answers the closer; a clock that is
    set meanwhile makes two looks contradict each other, and the later one counts.
    """
    ticks.valkey().ping()  # connect first: what follows should take no time
    least, most = -math.inf, math.inf
    for _ in range(LOOKS):
        low, high = _look_at_clocks()
        least, most = max(least, low), min(most, high)
        if least > most:
            least, most = sorted((low, high))  # it was set back within a look: that one is wide
        if most - least <= CLOSE_SECONDS:
            break
    return (least + most) / 2


def _look_at_clocks() -> tuple[float, float]:
    """Between which two the database's clock minus Valkey's lies."""
    before = clock.database_now().timestamp()
    seconds, microseconds = ticks.valkey().time()
    after = clock.database_now().timestamp()
    told = seconds + microseconds / 1e6
    return before - told, after - told
