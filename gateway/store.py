"""The route table in Valkey: one script stores a head and its parts, or nothing."""

from collections.abc import Mapping

from gateway.edge.table import Head, encode_head
from lanes import clock, ticks
from wire.edges import TABLE_CHANNEL, TABLE_HEAD, TABLE_PARTS
from wire.sealing import Sealer

# KEYS: head, parts. ARGV: version, confirmed_at, payload, signature, channel, then name and bytes
# of parts. Answers "stored", "outranked", or "missing" with the parts that must come along: those
# that Valkey does not hold under the digest that the new head gives them. So an emptied Valkey
# gets everything, and an unchanged table costs its head alone.
_STORE = """
local held = redis.call('HMGET', KEYS[1], 'version', 'confirmed_at', 'payload')
local version, confirmed = tonumber(held[1] or ''), tonumber(held[2] or '')
local new_version, new_confirmed = tonumber(ARGV[1]), tonumber(ARGV[2])
if version and confirmed and (version > new_version
    or (version == new_version and confirmed >= new_confirmed)) then
  return {'outranked'}
end
local known = {}
local is_json, head = pcall(cjson.decode, held[3] or '')
if is_json and type(head) == 'table' and type(head.parts) == 'table' then known = head.parts end
local wanted = cjson.decode(ARGV[3]).parts
local given = {}
for i = 6, #ARGV, 2 do given[ARGV[i]] = ARGV[i + 1] end
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
ATTEMPTS = 3  # another publisher may store between "missing" and the answer to it


def store(head: Head, parts: Mapping[str, bytes], sealer: Sealer) -> bool:
    """Store a table, unless Valkey holds a higher (version, confirmed_at); says whether it did.

    Raises redis.RedisError when Valkey does not answer.
    """
    payload, signature = encode_head(head, sealer)
    script = ticks.valkey().register_script(_STORE)
    names: list[str] = []
    for _ in range(ATTEMPTS):
        given: list[str | bytes] = [each for name in names for each in (name, parts[name])]
        first: list[str | bytes] = [str(head.version), repr(head.confirmed_at), payload]
        arguments = [*first, signature, TABLE_CHANNEL, *given]
        answer = script(keys=[TABLE_HEAD, TABLE_PARTS], args=arguments)
        if answer[0] != b"missing":
            return bool(answer[0] == b"stored")
        names = [name.decode() for name in answer[1:]]
    return False


def clock_offset() -> float:
    """The database's clock minus Valkey's, in seconds; RedisError when Valkey does not answer."""
    valkey = ticks.valkey()
    valkey.ping()  # connect first: what follows should take no time
    before = clock.database_now().timestamp()
    seconds, microseconds = valkey.time()
    after = clock.database_now().timestamp()
    return (before + after) / 2 - (seconds + microseconds / 1e6)
