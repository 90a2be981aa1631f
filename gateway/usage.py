"""Moving usage records from the edges' stream to the database: one ingester, small batches."""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import redis
from django.contrib.auth import get_user_model
from django.db import connection, models, transaction

from bookings.rule_keeping import note_first_requests
from gateway import tokens
from gateway.models import ApiToken, UsageRecord
from lanes import ticks
from lanes.models import Lane
from wire.edges import USAGE_STREAM
from wire.usage import USAGE_WAITING, Usage, decode_entry

log = logging.getLogger(__name__)

GROUP = "database"
CONSUMER = "ingester"
LOCK = "ss:usage:ingester"
LOCK_SECONDS = 30
BATCH = 100  # rows in one transaction: more would make bookings on SQLite wait
PAUSE_SECONDS = 0.05  # between two; PostgreSQL's writers do not wait for each other
BUDGET_SECONDS = 1.0  # of one call, so that no task is long
DROPPED = "ss:usage:dropped"  # how many were ever taken off that were no records
# Takes entries off the stream, each given with the number of its records.
_TAKE_OFF = """
local gone = 0
for i = 3, #ARGV, 2 do
  redis.call('XACK', KEYS[1], ARGV[1], ARGV[i])
  if redis.call('XDEL', KEYS[1], ARGV[i]) == 1 then gone = gone + ARGV[i + 1] end
end
local waiting = (tonumber(redis.call('GET', KEYS[2])) or 0) - gone
redis.call('SET', KEYS[2], math.max(waiting, redis.call('XLEN', KEYS[1])))
return redis.call('INCRBY', KEYS[3], ARGV[2])
"""


RawEntry = tuple[bytes, dict[bytes, bytes] | None]


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the stream: one record or many, None for each that is none."""

    entry_id: bytes
    records: Sequence[Usage | None]


@dataclass(frozen=True, slots=True)
class Ingested:
    """What one call has moved: stream entries taken off, and how much in them was no record."""

    entries: int = 0
    dropped: int = 0
    is_more: bool = False  # its time was over before the stream was empty


def ingest(limit: int = BATCH) -> Ingested:
    """Move what waits, at most `limit` rows a transaction, for about a second.

    Safe to repeat: an entry is taken off the stream only after it is in the database, where its
    request id is unique. Answers at once when another ingester is at work, or without Valkey.
    """
    valkey = ticks.valkey()
    try:
        if not ticks.claim(LOCK, LOCK_SECONDS):
            return Ingested()
        try:
            return _ingest_batches(valkey, limit)
        finally:
            valkey.delete(LOCK)
    except redis.RedisError as error:
        log.warning("usage not ingested: Valkey does not answer reason=%s", error)
        return Ingested()


def store_records(records: Iterable[Usage]) -> None:
    """Write records that are not there yet, and note the last use of their tokens."""
    records = list(records)
    people = _existing(get_user_model(), (record.owner_id for record in records))
    keys = _existing(ApiToken, (record.token_id for record in records))
    slugs = {record.lane for record in records}
    lanes = dict(Lane.objects.filter(slug__in=slugs).values_list("slug", "pk"))
    rows = [_row(record, people=people, keys=keys, lanes=lanes) for record in records]
    uses = tokens.worth_noting(_last_uses(rows))
    with transaction.atomic():
        UsageRecord.objects.bulk_create(rows, ignore_conflicts=True)
        tokens.note_use(uses)
    note_first_requests(_first_requests(rows))


def pause() -> None:
    """Between two transactions: let others write."""
    time.sleep(PAUSE_SECONDS if connection.vendor == "sqlite" else 0.0)


def _ingest_batches(valkey: redis.Redis, limit: int) -> Ingested:
    _ensure_group(valkey)
    entries = dropped = 0
    deadline = time.monotonic() + BUDGET_SECONDS
    while read := _next_entries(valkey, limit):
        for batch in _batches(read, limit):
            entries += len(batch)
            dropped += _move(valkey, batch, limit)
            if _size(batch) >= limit and time.monotonic() >= deadline:
                return Ingested(entries, dropped, is_more=True)
    return Ingested(entries, dropped)


def _batches(entries: Iterable[RawEntry], limit: int) -> Iterator[list[Entry]]:
    """Entries together until they have `limit` records or more; decoded only when it is their turn.

    An entry may hold 200 records, and time is over long before a hundred of them are stored.
    """
    batch: list[Entry] = []
    for entry_id, fields in entries:
        batch.append(Entry(entry_id, decode_entry(fields) if fields else [None]))
        if _size(batch) >= limit:
            yield batch
            batch = []
    if batch:
        yield batch


def _size(batch: Iterable[Entry]) -> int:
    return sum(len(entry.records) for entry in batch)


def _move(valkey: redis.Redis, batch: list[Entry], limit: int) -> int:
    """Into the database, then off the stream; says how much was no record."""
    records = [record for entry in batch for record in entry.records if record is not None]
    for start in range(0, len(records), limit):
        store_records(records[start : start + limit])
        if start + limit <= len(records):
            pause()
    dropped = _size(batch) - len(records)
    sizes = [part for entry in batch for part in (entry.entry_id, len(entry.records))]
    keys = (USAGE_STREAM, USAGE_WAITING, DROPPED)
    total = valkey.eval(_TAKE_OFF, len(keys), *keys, GROUP, dropped, *sizes)
    if dropped:
        log.warning("usage entries that are no records: dropped count=%s ever=%s", dropped, total)
    return dropped


def _next_entries(valkey: redis.Redis, limit: int) -> list[RawEntry]:
    """What an earlier call has read and not finished; then what is new."""
    for start in ("0", ">"):
        read: Any = valkey.xreadgroup(GROUP, CONSUMER, {USAGE_STREAM: start}, count=limit)
        if read and read[0][1]:
            return list(read[0][1])
    return []


def _ensure_group(valkey: redis.Redis) -> None:
    try:
        valkey.xgroup_create(USAGE_STREAM, GROUP, id="0", mkstream=True)
    except redis.ResponseError as error:
        if "BUSYGROUP" not in str(error):
            raise


def _row(
    record: Usage, *, people: set[int], keys: set[int], lanes: Mapping[str, int]
) -> UsageRecord:
    """The row of a record; whom and what it names may be gone by now."""
    return UsageRecord(
        request_id=record.request_id,
        at=datetime.fromtimestamp(record.at, UTC),
        owner_id=record.owner_id if record.owner_id in people else None,
        token_id=record.token_id if record.token_id in keys else None,
        lane_id=lanes.get(record.lane),
        booking_id_for=record.booking_id,
        preset=record.preset,
        route=record.route,
        status=record.status,
        code=record.code,
        duration_ms=record.duration_ms,
        queue_ms=record.queue_ms,
        first_byte_ms=record.first_byte_ms,
        bytes_in=record.bytes_in,
        bytes_out=record.bytes_out,
        is_aborted=record.is_aborted,
        prompt_tokens=record.prompt_tokens,
        completion_tokens=record.completion_tokens,
        cached_tokens=record.cached_tokens,
        is_estimated=record.is_estimated,
    )


def _existing(model: type[models.Model], pks: Iterable[int | None]) -> set[int]:
    """Those of the keys that are still in the table."""
    wanted = {pk for pk in pks if pk is not None}
    return set(model._default_manager.filter(pk__in=wanted).values_list("pk", flat=True))


def _first_requests(rows: Iterable[UsageRecord]) -> dict[int, datetime]:
    """By booking: when the first of its requests came. Only what was let in has a booking."""
    firsts: dict[int, datetime] = {}
    for row in rows:
        if row.booking_id_for is not None:
            known = firsts.get(row.booking_id_for, row.at)
            firsts[row.booking_id_for] = min(row.at, known)
    return firsts


def _last_uses(rows: Iterable[UsageRecord]) -> dict[int, datetime]:
    uses: dict[int, datetime] = {}
    for row in rows:
        if row.token_id is not None:
            uses[row.token_id] = max(row.at, uses.get(row.token_id, row.at))
    return uses
