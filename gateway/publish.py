"""Publishing the route table: read the facts, number them, sign them, store them.

The number is given under a lock that is taken before the facts are read, so a higher number never
stands for older facts; Valkey keeps the highest. That alone settles a late publisher, an emptied
Valkey and a restored backup.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import redis
from django.conf import settings
from django.db import transaction

from gateway import store
from gateway.edge.table import (
    LANE_PREFIX,
    PRESETS_PART,
    TOKENS_PART,
    Head,
    digest_of,
    encode_part,
)
from gateway.models import TableState
from gateway.route_facts import read_lanes, read_presets, read_tokens
from gateway.route_lane import lane_route
from lanes import clock
from wire.sealing import Sealer, read_table_keys

log = logging.getLogger(__name__)

ONLY_ROW = 1


@dataclass(frozen=True, slots=True)
class Numbered:
    """Encoded parts with their place in the order of tables."""

    version: int
    confirmed_at: float
    parts: Mapping[str, bytes]
    digests: Mapping[str, str]


def publish() -> bool:
    """Bring the edges' table up to date; says whether Valkey took it (a renewal counts).

    False when Valkey does not answer or another publisher was later: the next beat publishes again.
    """
    sealer = Sealer(read_table_keys())
    try:
        offset = store.clock_offset()
        # Valkey may hold a number that this database never gave: it was restored from a backup, or
        # its clock was set back. Then the same facts need a new number to be taken.
        return any(_publish_once(sealer, offset, is_new=is_new) for is_new in (False, True))
    except redis.RedisError as error:
        log.warning("route table not stored: Valkey does not answer reason=%s", error)
        return False


def _publish_once(sealer: Sealer, offset: float, *, is_new: bool) -> bool:
    table = number(is_new=is_new)
    head = Head(table.version, table.confirmed_at, offset, table.digests)
    return store.store(head, table.parts, sealer)


def number(*, is_new: bool = False) -> Numbered:
    """The present facts with their number: a new one when they differ from the last published."""
    with transaction.atomic():
        state = _locked_state()
        now = clock.database_now()
        parts = read_parts(now)
        digests = {name: digest_of(payload) for name, payload in parts.items()}
        digest = digest_of(encode_part(digests))
        if is_new or digest != state.digest or not state.version:
            state.version = max(state.version + 1, int(now.timestamp() * 1000))
            state.digest = digest
            state.save(update_fields=["version", "digest"])
    return Numbered(state.version, now.timestamp(), parts, digests)


def read_parts(now: datetime) -> dict[str, bytes]:
    """Every part, encoded: tokens, presets, and one for each lane; nine queries."""
    drain = settings.SLOTSERVE_DRAIN_SECONDS
    lanes = {LANE_PREFIX + lane.slug: lane_route(lane, drain) for lane in read_lanes(now)}
    values = {TOKENS_PART: read_tokens(now), PRESETS_PART: read_presets(), **lanes}
    return {name: encode_part(value) for name, value in values.items()}


def _locked_state() -> TableState:
    """The one row, locked; made when missing, also when another publisher makes it too."""
    return TableState.objects.select_for_update().get_or_create(pk=ONLY_ROW)[0]
