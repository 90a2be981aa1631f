"""What the self-check reads from Valkey: table, gateways, workers, usage."""

from typing import Any

import redis
from celery import Celery
from django.conf import settings
from django.db import DatabaseError
from kombu.exceptions import OperationalError

from gateway import store
from gateway.edge.table import Head, TableError, decode_head
from gateway.usage import DROPPED
from lanes import ticks
from slotserve.broker import celery_url
from slotserve.selfcheck.facts import ValkeyFacts
from wire.edges import EDGES, TABLE_HEAD, USAGE_STREAM, EdgeReport, decode_report
from wire.env import SettingError
from wire.sealing import Sealer, read_table_keys
from wire.usage import USAGE_WAITING

ANSWER_SECONDS = 1.0  # for workers to say that they live


def read_valkey(*, is_database_up: bool) -> ValkeyFacts | str:
    """Everything it holds that matters, or why it does not answer."""
    try:
        valkey = ticks.valkey()
        seconds, microseconds = valkey.time()
        return ValkeyFacts(
            now_ms=seconds * 1000 + microseconds // 1000,
            offset=_offset() if is_database_up else None,
            head=_head(valkey),
            edges=_edges(valkey),
            queues=_queues(),
            usage_waiting=max(int(valkey.get(USAGE_WAITING) or 0), valkey.xlen(USAGE_STREAM)),
            usage_dropped=int(valkey.get(DROPPED) or 0),
        )
    except (redis.RedisError, OperationalError, OSError) as error:
        return str(error) or type(error).__name__


def _offset() -> float | None:
    try:
        return store.clock_offset()
    except DatabaseError:
        return None


def _head(valkey: redis.Redis) -> Head | str | None:
    """The table's head, None when there is none, a sentence when it cannot be read."""
    held: list[Any] = valkey.hmget(TABLE_HEAD, ["payload", "signature"])
    payload, signature = held
    if payload is None or signature is None:
        return None
    try:
        return decode_head(payload, signature.decode("ascii", "ignore"), Sealer(read_table_keys()))
    except (TableError, SettingError) as error:
        return str(error)


def _edges(valkey: redis.Redis) -> tuple[EdgeReport, ...]:
    raw: dict[Any, Any] = valkey.hgetall(EDGES)
    reports = (decode_report(name.decode(errors="replace"), word) for name, word in raw.items())
    return tuple(report for report in reports if report is not None)


def _queues() -> frozenset[str]:
    """The queues of workers that answer within a second."""
    try:
        answers = _ask_workers()
    except (redis.RedisError, OperationalError, OSError):
        answers = _ask_workers()  # a connection that was kept since Valkey's last restart is dead
    per_worker = (queues for answer in answers for queues in answer.values())
    return frozenset(queue["name"] for queues in per_worker for queue in queues)


def _ask_workers() -> list[dict[str, Any]]:
    """One answer of each, by its name; two on one machine may have the same."""
    broker = celery_url(settings.REDIS_URL)
    with Celery("self-check", broker=broker, set_as_current=False) as app:
        app.conf.broker_transport_options = settings.CELERY_BROKER_TRANSPORT_OPTIONS
        ask = app.control.broadcast
        answers: list[dict[str, Any]] | None
        answers = ask("active_queues", reply=True, timeout=ANSWER_SECONDS)
        return answers or []
