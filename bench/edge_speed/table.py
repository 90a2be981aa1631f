"""A route table with one lane, as the product publishes it: one token, one model server."""

import time

import redis

from gateway.edge.table import (
    LANE_PREFIX,
    PRESETS_PART,
    TOKENS_PART,
    Grant,
    Head,
    LaneRoute,
    TokenEntry,
    Upstream,
    digest_of,
    encode_head,
    encode_part,
)
from wire.edges import TABLE_CHANNEL, TABLE_HEAD, TABLE_PARTS
from wire.sealing import Sealer

TOKEN = "ss_the_token_of_the_benchmark"
LANES, TOKENS, GRANTS = 20, 200, 20  # what an edge of a middling site holds


def publish(client: "redis.Redis", sealer: Sealer, upstream_url: str) -> None:
    """Store a table: the caller holds a booking of lane-0; more lanes and tokens stand beside."""
    now = time.time()
    upstream = Upstream(1, "qwen", ("qwen",), upstream_url, sealer.seal("server-key"))
    digests = [digest_of(TOKEN.encode()), *(f"{n:064x}" for n in range(1, TOKENS))]
    values = {
        TOKENS_PART: {d: TokenEntry(n, n, ("inference",)) for n, d in enumerate(digests)},
        PRESETS_PART: {"qwen": "qwen"},
        **{f"{LANE_PREFIX}lane-{n}": _lane(n, upstream, now) for n in range(LANES)},
    }
    parts = {name: encode_part(value) for name, value in values.items()}
    head = Head(1, now, 0.0, {name: digest_of(payload) for name, payload in parts.items()})
    payload, signature = encode_head(head, sealer)
    client.hset(TABLE_PARTS, mapping=parts)  # type: ignore[arg-type]
    client.hset(TABLE_HEAD, mapping={"payload": payload, "signature": signature})
    client.publish(TABLE_CHANNEL, "1")


def _lane(number: int, upstream: Upstream, now: float) -> LaneRoute:
    """Lane 0 is the caller's for a day; the others belong to other people."""
    first = Grant(1, number, now - 60, now + 86_400, "qwen")
    later = [
        Grant(n, n, now + 86_400 + n * 3600, now + 90_000 + n * 3600, "qwen") for n in range(GRANTS)
    ]
    return LaneRoute(
        f"lane-{number}",
        enabled=True,
        generation=1,
        phase="ready",
        upstream=upstream,
        target="qwen",
        grants=(first, *later),
    )
