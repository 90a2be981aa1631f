"""Publishing the route table: read the facts, number them, sign them, store them.

A number is given only to facts that were read after the number before it was given, so a higher
number never stands for older facts; Valkey keeps the highest, and takes a new one alone when it was
emptied. That settles a late publisher, an emptied Valkey and a restored backup.
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
    CATALOGUE_PART,
    LANE_PREFIX,
    MAINTENANCE_PART,
    PRESETS_PART,
    SHARES_PART,
    SLOT_TOKENS_PART,
    TOKENS_PART,
    Head,
    digest_of,
    encode_part,
)
from gateway.models import TableState
from gateway.route_catalogue import preset_names, read_catalogue, read_presets
from gateway.route_facts import read_lanes, read_maintenance, read_shares
from gateway.route_lane import lane_route
from gateway.route_tokens import read_slot_tokens, read_tokens
from lanes import clock
from wire.sealing import Sealer, read_table_keys

log = logging.getLogger(__name__)

ONLY_ROW = 1
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Encoded:
    """The parts of the facts that held at or after `read_at`."""

    read_at: datetime
    parts: Mapping[str, bytes]
    digests: Mapping[str, str]
    digest: str  # of the digests


def publish() -> bool:
    """Bring the edges' table up to date; says whether Valkey took it (a renewal counts).

    False when Valkey does not answer or another publisher was later: the next beat publishes again.
    """
    sealer = Sealer(read_table_keys())
    try:
        offset = store.clock_offset()
        # Valkey may hold a number that this database never gave: it was restored from a backup, or
        # its clock was set back; or none, and edges may hold a later confirmation than this. Then
        # the same facts need a new number to be taken.
        return any(_publish_once(sealer, offset, is_new=is_new) for is_new in (False, True))
    except redis.RedisError as error:
        log.warning("route table not stored: Valkey does not answer reason=%s", error)
        return False


def number(*, is_new: bool = False) -> tuple[int, Encoded]:
    """The present facts and their number: a new one when they differ from the last published.

    No lock is held while facts are read and encoded: on SQLite it would hold up every writer.
    Where other publishers are first again and again, the row is locked after all.
    """
    for _ in range(ATTEMPTS):
        last = TableState.objects.get_or_create(pk=ONLY_ROW)[0]
        table = encode_facts(clock.database_now())
        if table.digest == last.digest and not is_new:
            return last.version, table
        version = _next_version(last, table)
        if _take_number(last, version, table):
            return version, table
    return _number_locked(is_new=is_new)


def encode_facts(now: datetime) -> Encoded:
    """Every part, encoded: tokens, shares, presets, catalogue, maintenance, and one for each lane;
    fourteen queries."""
    drain, lanes, presets = settings.SLOTSERVE_DRAIN_SECONDS, read_lanes(now), read_presets()
    values = {
        TOKENS_PART: read_tokens(now),
        SLOT_TOKENS_PART: read_slot_tokens(now),
        SHARES_PART: read_shares(now),
        PRESETS_PART: preset_names(presets),
        CATALOGUE_PART: read_catalogue(presets, lanes),
        MAINTENANCE_PART: read_maintenance(now),
        **{LANE_PREFIX + lane.slug: lane_route(lane, drain) for lane in lanes},
    }
    parts = {name: encode_part(value) for name, value in values.items()}
    digests = {name: digest_of(payload) for name, payload in parts.items()}
    return Encoded(now, parts, digests, digest_of(encode_part(digests)))


def _publish_once(sealer: Sealer, offset: float, *, is_new: bool) -> bool:
    version, table = number(is_new=is_new)
    head = Head(version, table.read_at.timestamp(), offset, table.digests)
    return store.store(head, table.parts, sealer, is_new=is_new)


def _take_number(last: TableState, version: int, table: Encoded) -> bool:
    """Give the number to these facts, unless another was given since `last` was read.

    So they were read after the number before theirs was given, whose facts are older: a higher
    number never stands for older facts.
    """
    unchanged = TableState.objects.filter(pk=ONLY_ROW, version=last.version, digest=last.digest)
    return unchanged.update(version=version, digest=table.digest) == 1


@transaction.atomic
def _number_locked(*, is_new: bool) -> tuple[int, Encoded]:
    """Lock, read, number: the same promise, kept by a lock."""
    state = TableState.objects.select_for_update().get_or_create(pk=ONLY_ROW)[0]
    table = encode_facts(clock.database_now())
    if is_new or table.digest != state.digest:
        state.version, state.digest = _next_version(state, table), table.digest
        state.save(update_fields=["version", "digest"])
    return state.version, table


def _next_version(last: TableState, table: Encoded) -> int:
    return max(last.version + 1, int(table.read_at.timestamp() * 1000))
