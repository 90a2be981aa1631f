"""Usage after an outage: everything that waits is stored once, though ingesters die at work."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from django.conf import settings
from django.db import OperationalError, connection

from gateway import usage
from gateway.models import UsageRecord
from lanes import ticks
from tests.usage_cast import CALL
from wire.edges import USAGE_STREAM
from wire.usage import Usage, encode_usage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.valkey, pytest.mark.process]
WAITING = 5_000


def report_backlog() -> None:
    with ticks.valkey().pipeline(transaction=False) as pipeline:
        for number in range(WAITING):
            record = replace(CALL, request_id=f"r-{number}")
            pipeline.xadd(USAGE_STREAM, encode_usage(record))  # type: ignore[arg-type]
        pipeline.execute()


def die_at_work(batches: int, *, is_written: bool) -> None:
    """Run an ingester until it is killed in its last batch."""
    told = {
        "database": str(connection.settings_dict["NAME"]),
        "redis_url": settings.REDIS_URL,
        "batches": batches,
        "is_written": is_written,
    }
    argv = [sys.executable, "-m", "tests.ingester_program", json.dumps(told)]
    ended = subprocess.run(argv, cwd=settings.BASE_DIR, timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL


def fail_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one ingester fail between the database and the stream."""
    write = usage.store_records

    def store_and_fail(records: list[Usage]) -> None:
        write(records)
        raise OperationalError("database is locked")

    with monkeypatch.context() as patch:
        patch.setattr(usage, "store_records", store_and_fail)
        with pytest.raises(OperationalError):
            ingest_once()


def ingest_once() -> usage.Ingested:
    """When the lock of the one that was killed has run out."""
    deadline = time.monotonic() + 10
    while ticks.valkey().exists(usage.LOCK):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return usage.ingest()


def test_a_backlog_is_stored_once_though_ingesters_die_at_work(
    valkey: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "PAUSE_SECONDS", 0.0)
    report_backlog()
    die_at_work(7, is_written=True)
    die_at_work(3, is_written=False)
    assert 600 < UsageRecord.objects.count() < WAITING
    fail_at_work(monkeypatch)
    while ingest_once().is_more:
        pass
    ids = set(UsageRecord.objects.values_list("request_id", flat=True))
    assert ids == {f"r-{number}" for number in range(WAITING)}
    assert ticks.valkey().xlen(USAGE_STREAM) == 0
    assert ticks.valkey().xpending(USAGE_STREAM, usage.GROUP)["pending"] == 0
    ticks.valkey().close()
