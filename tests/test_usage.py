"""From the edges' stream to the database: each record once, bad ones dropped, in small batches."""

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.db import OperationalError, connection
from pytest_django import DjangoAssertNumQueries

from gateway import tokens, usage
from gateway.models import ApiToken, UsageRecord
from lanes import ticks
from lanes.refusals import Refusal
from tests import builders
from tests.conftest import ValkeyServer
from tests.usage_cast import ARRIVAL, CALL, many
from wire.edges import USAGE_STREAM
from wire.usage import (
    FIELD,
    FIELD_OF_MANY,
    USAGE_WAITING,
    Usage,
    encode_line,
    encode_usage,
    pack_lines,
)


@pytest.fixture
def stream(valkey: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(usage, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(usage, "BUDGET_SECONDS", 60.0)  # a busy machine may take its time
    yield USAGE_STREAM
    ticks.valkey().close()


def report(*records: Usage) -> None:
    for record in records:
        ticks.valkey().xadd(USAGE_STREAM, encode_usage(record))  # type: ignore[arg-type]


def report_packed(*lines: bytes) -> None:
    """One entry, as edges add it."""
    ticks.valkey().xadd(USAGE_STREAM, {FIELD_OF_MANY: pack_lines(lines)})
    ticks.valkey().incrby(USAGE_WAITING, len(lines))


def waiting() -> tuple[int, int]:
    """Entries in the stream, and those read but not finished."""
    pending = ticks.valkey().xpending(USAGE_STREAM, usage.GROUP)
    return ticks.valkey().xlen(USAGE_STREAM), pending["pending"]


def token() -> ApiToken:
    made = tokens.create_token(
        owner=builders.person(), name="n", scopes=["inference"], lanes=[], expires_at=None
    )
    assert not isinstance(made, Refusal)
    return made[0]


@pytest.mark.django_db
@pytest.mark.usefixtures("stream")
def test_a_record_becomes_a_row_and_leaves_the_stream() -> None:
    lane, key = builders.lane("fast"), token()
    report(replace(CALL, owner_id=key.owner_id, token_id=key.pk, lane="fast", booking_id=77))
    assert usage.ingest() == usage.Ingested(entries=1)
    row = UsageRecord.objects.get()
    assert (row.owner, row.token, row.lane, row.booking_id_for) == (key.owner, key, lane, 77)
    assert (row.at, row.status, row.duration_ms, row.completion_tokens) == (
        datetime.fromtimestamp(ARRIVAL, UTC),
        200,
        812.5,
        60,
    )
    assert (row.queue_ms, row.cached_tokens, row.is_estimated) == (250.5, 3, True)
    assert waiting() == (0, 0)


@pytest.mark.django_db
@pytest.mark.usefixtures("stream")
def test_a_record_that_arrives_twice_is_one_row() -> None:
    report(CALL, CALL)
    usage.ingest()
    report(CALL)
    usage.ingest()
    assert UsageRecord.objects.count() == 1
    assert waiting() == (0, 0)


@pytest.mark.django_db
@pytest.mark.usefixtures("stream")
def test_people_tokens_and_lanes_that_are_gone_leave_an_empty_place() -> None:
    report(replace(CALL, owner_id=999, token_id=999, lane="deleted"))
    usage.ingest()
    row = UsageRecord.objects.get()
    assert (row.owner, row.token, row.lane) == (None, None, None)


@pytest.mark.django_db
def test_bad_entries_are_counted_and_dropped_beside_good_ones(
    stream: str, caplog: pytest.LogCaptureFixture
) -> None:
    ticks.valkey().xadd(stream, {FIELD: b"{"})
    ticks.valkey().xadd(stream, {"foreign": b"1"})
    report(CALL)
    assert usage.ingest() == usage.Ingested(entries=3, dropped=2)
    assert UsageRecord.objects.count() == 1
    assert "dropped count=2 ever=2" in caplog.text
    assert waiting() == (0, 0)
    ticks.valkey().xadd(stream, {FIELD: b"{"})
    usage.ingest()
    assert ticks.valkey().get(usage.DROPPED) == b"3"


@pytest.mark.django_db
@pytest.mark.usefixtures("stream")
def test_bad_records_are_counted_singly_beside_good_ones_in_one_entry() -> None:
    lines = [encode_line(each) for each in many(3)]
    report_packed(*lines[:2], b"{", b"", lines[2])
    assert usage.ingest() == usage.Ingested(entries=1, dropped=2)
    assert UsageRecord.objects.count() == 3
    assert (waiting(), ticks.valkey().get(USAGE_WAITING)) == ((0, 0), b"0")


@pytest.mark.django_db
@pytest.mark.usefixtures("stream")
def test_the_records_that_wait_are_counted_down_as_entries_go() -> None:
    lines = [encode_line(each) for each in many(50)]
    report_packed(*lines[:20])
    report(many(50)[20])
    usage.ingest(1)
    ticks.valkey().incrby(USAGE_WAITING, 7)  # some that somebody else has taken off
    assert ticks.valkey().get(USAGE_WAITING) == b"7"
    report_packed(*lines[21:])
    usage.ingest(1)
    assert UsageRecord.objects.count() == 50
    assert waiting() == (0, 0)


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of the transactions."""
    sizes: list[int] = []
    write = usage.store_records

    def counted(records: list[Usage]) -> None:
        sizes.append(len(records))
        write(records)

    monkeypatch.setattr(usage, "store_records", counted)
    return sizes


@pytest.mark.django_db
@pytest.mark.usefixtures("stream")
def test_entries_of_many_records_are_written_in_batches_of_the_limit(sizes: list[int]) -> None:
    lines = [encode_line(each) for each in many(490)]
    for first, last in ((0, 1), (1, 60), (60, 260), (260, 460), (460, 490)):
        report_packed(*lines[first:last])
    assert usage.ingest() == usage.Ingested(entries=5)
    assert sizes == [100, 100, 60, 100, 100, 30]
    assert UsageRecord.objects.count() == 490


@pytest.mark.django_db
@pytest.mark.usefixtures("stream")
def test_rows_are_written_in_batches_of_the_limit(sizes: list[int]) -> None:
    report(*many(250))
    assert usage.ingest() == usage.Ingested(entries=250)
    assert sizes == [100, 100, 50]
    assert UsageRecord.objects.count() == 250


@pytest.mark.django_db
@pytest.mark.usefixtures("stream")
def test_what_a_failed_call_had_read_is_taken_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise OperationalError("database is locked")

    report(*many(3))
    with monkeypatch.context() as patch:
        patch.setattr(usage, "store_records", fail)
        with pytest.raises(OperationalError):
            usage.ingest()
    assert waiting() == (3, 3)
    assert usage.ingest() == usage.Ingested(entries=3)
    assert UsageRecord.objects.count() == 3
    assert waiting() == (0, 0)


@pytest.mark.django_db
@pytest.mark.usefixtures("stream")
def test_a_second_ingester_leaves_the_work_to_the_first() -> None:
    report(CALL)
    ticks.valkey().set(usage.LOCK, "1")
    assert usage.ingest() == usage.Ingested()
    ticks.valkey().delete(usage.LOCK)
    assert usage.ingest() == usage.Ingested(entries=1)


@pytest.mark.django_db
@pytest.mark.usefixtures("stream")
def test_a_call_says_when_its_time_was_over_before_the_stream_was_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(usage, "BUDGET_SECONDS", 0.0)
    report(*many(250))
    assert usage.ingest() == usage.Ingested(entries=100, is_more=True)
    assert usage.ingest() == usage.Ingested(entries=100, is_more=True)
    assert usage.ingest() == usage.Ingested(entries=50)


@pytest.mark.django_db
@pytest.mark.usefixtures("stream")
def test_an_entry_of_many_records_that_was_half_written_is_one_row_a_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = usage.store_records

    def fail_at_the_second(records: list[Usage]) -> None:
        if records[0].request_id != "r-0":
            raise OperationalError("database is locked")
        write(records)

    report_packed(*[encode_line(each) for each in many(200)])
    with monkeypatch.context() as patch:
        patch.setattr(usage, "store_records", fail_at_the_second)
        with pytest.raises(OperationalError):
            usage.ingest()
    assert (UsageRecord.objects.count(), waiting()) == (100, (1, 1))
    assert usage.ingest() == usage.Ingested(entries=1)
    assert (UsageRecord.objects.count(), waiting()) == (200, (0, 0))


@pytest.mark.django_db
@pytest.mark.usefixtures("valkey")
def test_only_sqlites_writers_are_given_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    clocks = SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic)
    monkeypatch.setattr(usage, "time", clocks)  # its own alone: other threads sleep, too
    report(*many(100))
    usage.ingest()
    ticks.valkey().close()
    assert pauses == [usage.PAUSE_SECONDS if connection.vendor == "sqlite" else 0.0]


@pytest.mark.django_db
@pytest.mark.usefixtures("stream")
def test_a_token_that_was_just_used_is_not_written_again(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    key = token()
    usage.store_records([replace(CALL, token_id=key.pk)])
    # People, tokens, lanes, last uses; savepoint, rows, release.
    with django_assert_num_queries(7):
        usage.store_records([replace(CALL, token_id=key.pk, owner_id=key.owner_id, lane="x")])


@pytest.mark.django_db
@pytest.mark.usefixtures("stream")
def test_use_is_noted_at_the_newest_call_and_at_most_once_a_minute() -> None:
    key = token()
    for number, seconds in enumerate((5, 20, 64, 65)):
        at = ARRIVAL + seconds
        report(replace(CALL, request_id=f"r-{number}", token_id=key.pk, at=at))
        usage.ingest()
    key.refresh_from_db()
    assert key.last_used_at == builders.NOON + timedelta(seconds=65)


@pytest.mark.django_db
@pytest.mark.usefixtures("stream")
def test_an_emptied_valkey_is_begun_anew(valkey_server: ValkeyServer) -> None:
    usage.ingest()
    ticks.valkey().flushall()
    report(CALL)
    assert usage.ingest() == usage.Ingested(entries=1)


@pytest.mark.django_db
@pytest.mark.usefixtures("stream")
def test_without_valkey_nothing_is_moved_and_it_says_so(
    valkey_server: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    valkey_server.stop()
    assert usage.ingest() == usage.Ingested()
    assert "Valkey does not answer" in caplog.text
