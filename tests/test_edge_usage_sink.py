"""Usage records reach the database whatever is away meanwhile; what is lost is counted."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio as redis

from gateway import usage
from gateway.edge import metering
from gateway.edge import valkey as edge_valkey
from gateway.edge.metering import UsageSink
from gateway.edge.pauses import end_all
from gateway.edge.usage_spool import UsageSpool
from gateway.edge.valkey import connect
from gateway.models import UsageRecord
from lanes import ticks
from tests.conftest import ValkeyServer
from tests.edge_harness import until
from wire.edges import USAGE_STREAM
from wire.usage import STREAM_LENGTH, USAGE_WAITING, Usage, decode_entry, encode_line, encode_usage

pytestmark = pytest.mark.valkey
ENOUGH = 2**30


@contextlib.asynccontextmanager
async def sinking(url: str, folder: Path, most_bytes: int = ENOUGH) -> AsyncIterator[UsageSink]:
    """A sink at work; afterwards it is flushed as when an edge stops."""
    client = connect(url)
    sink = UsageSink(client, UsageSpool(folder, "edge-1", most_bytes))
    task = asyncio.create_task(sink.run())
    try:
        yield sink
    finally:
        await end_all([task])
        await sink.flush()
        await client.aclose()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metering, "_PAUSE_SECONDS", 0.01)
    # What Valkey answers too late is sent again, and comes twice: not because a machine is busy.
    monkeypatch.setattr(metering, "_SEND_SECONDS", 60.0)
    monkeypatch.setattr(edge_valkey, "ANSWER_SECONDS", 60.0)
    monkeypatch.setattr(metering, "_RETRY_SECONDS", 0.05)
    monkeypatch.setattr(metering, "_BREATH_SECONDS", 0.0)
    monkeypatch.setattr(usage, "PAUSE_SECONDS", 0.0)


def put(sink: UsageSink, first: int, last: int) -> None:
    for number in range(first, last):
        sink.put(Usage(f"{number:06d}", 1.0, "/v1/x", 200, 1.0))


def id_of(record: Usage) -> str:
    return record.request_id


def ids(first: int, last: int) -> list[str]:
    return [f"{number:06d}" for number in range(first, last)]


async def read(url: str) -> list[str]:
    """What is in the stream."""
    client = connect(url)
    found = await taken(client)
    await client.aclose()
    return found


async def taken(client: "redis.Redis") -> list[str]:
    """The request ids of what is in the stream, which is emptied."""
    entries: Any = await client.xrange(USAGE_STREAM)
    if entries:
        await client.xdel(USAGE_STREAM, *[entry_id for entry_id, _ in entries])
    return ids_in(entries)


def ids_in(entries: Any) -> list[str]:
    return [each.request_id for _, fields in entries for each in decode_entry(fields) if each]


def ingested() -> list[str]:
    """What is in the database when the ingester has taken all that waits."""
    while usage.ingest().entries:
        pass
    return list(UsageRecord.objects.order_by("pk").values_list("request_id", flat=True))


@pytest.mark.django_db
def test_records_of_a_time_without_valkey_arrive_once(
    valkey_server: ValkeyServer, valkey: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Valkey hangs: a batch that was sent when it did so comes twice into the stream."""
    monkeypatch.setattr(metering, "_SEND_SECONDS", 0.3)

    async def under_load() -> None:
        async with sinking(valkey, tmp_path) as sink:
            for first in range(0, 6_000, 200):
                if first == 1_000:
                    valkey_server.signal(signal.SIGSTOP)
                if first == 4_000:
                    await until(lambda: sink.spooled_bytes)
                    valkey_server.signal(signal.SIGCONT)
                put(sink, first, first + 200)
                await asyncio.sleep(0.005)
            await until(lambda: not sink.buffered and not sink.spooled_bytes)
            assert sink.dropped == 0

    asyncio.run(under_load())
    assert sorted(ingested()) == ids(0, 6_000)
    ticks.valkey().close()


async def test_records_wait_for_a_valkey_that_is_gone(
    valkey_server: ValkeyServer, tmp_path: Path
) -> None:
    valkey_server.stop()
    async with sinking(valkey_server.url, tmp_path) as sink:
        for first in range(0, 3_000, 100):
            put(sink, first, first + 100)
            await asyncio.sleep(0.002)
        await until(lambda: sink.spooled_bytes and not sink.buffered)
        valkey_server.start()
        await until(lambda: not sink.spooled_bytes)
        assert await read(valkey_server.url) == ids(0, 3_000)  # in their order


async def test_an_edge_that_stops_without_valkey_leaves_a_file_to_the_next(
    valkey_server: ValkeyServer, tmp_path: Path
) -> None:
    valkey_server.stop()
    async with sinking(valkey_server.url, tmp_path) as sink:
        put(sink, 0, 500)
    assert sink.dropped == 0
    valkey_server.start()
    async with sinking(valkey_server.url, tmp_path) as sink:
        await until(lambda: not list(tmp_path.rglob("*.jsonl")))
    assert await read(valkey_server.url) == ids(0, 500)


async def test_without_a_consumer_the_stream_stays_at_its_bound_and_the_file_has_the_rest(
    valkey_server: ValkeyServer, tmp_path: Path
) -> None:
    """150,000 records, as an hour without a worker may bring; then one comes."""
    client = connect(valkey_server.url)
    async with sinking(valkey_server.url, tmp_path) as sink:
        for first in range(0, 150_000, 1_000):
            put(sink, first, first + 1_000)
            await until(lambda: sink.buffered < 5_000)
        await until(lambda: not sink.buffered, 60)
        assert len(ids_in(await client.xrange(USAGE_STREAM))) == STREAM_LENGTH
        written = b"".join(path.read_bytes() for path in sorted(tmp_path.rglob("*.jsonl")))
        assert written.count(b"\n") == 50_000
        found: list[str] = []
        async with asyncio.timeout(60):
            while len(found) < 150_000:
                found += await taken(client)
        await until(lambda: not sink.spooled_bytes)
    is_same = found == ids(0, 150_000)  # a difference of this length takes pytest minutes to tell
    assert is_same
    assert sink.dropped == 0
    await client.aclose()


async def test_of_a_batch_that_the_stream_has_no_room_for_the_first_records_are_taken(
    valkey_server: ValkeyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metering, "STREAM_LENGTH", 250)
    client = connect(valkey_server.url)
    async with sinking(valkey_server.url, tmp_path) as sink:
        put(sink, 0, 500)
        await until(lambda: sink.spooled_bytes and not sink.buffered)
        assert ids_in(await client.xrange(USAGE_STREAM)) == ids(0, 250)
        assert await client.get(USAGE_WAITING) == b"250"
        found = await taken(client)
        await until(lambda: not sink.spooled_bytes)
    assert found + await taken(client) == ids(0, 500)
    assert sink.dropped == 0
    await client.aclose()


async def test_entries_of_earlier_edges_fill_the_stream_as_well(
    valkey_server: ValkeyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metering, "STREAM_LENGTH", 12)
    client = connect(valkey_server.url)
    for number in range(10):
        entry: Any = encode_usage(Usage(f"{number:06d}", 1.0, "/v1/x", 200, 1.0))
        await client.xadd(USAGE_STREAM, entry)
    async with sinking(valkey_server.url, tmp_path) as sink:
        put(sink, 10, 15)
        await until(lambda: sink.spooled_bytes)
        assert await taken(client) == ids(0, 12)
        await until(lambda: not sink.spooled_bytes)
    assert await taken(client) == ids(12, 15)
    await client.aclose()


async def test_the_room_that_the_worker_makes_is_filled_and_no_more(
    valkey: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    monkeypatch.setattr(usage, "store_records", lambda records: found.extend(map(id_of, records)))
    monkeypatch.setattr(metering, "STREAM_LENGTH", 130)
    async with sinking(valkey, tmp_path) as sink:
        put(sink, 0, 3_000)
        while len(found) < 3_000:
            assert int(ticks.valkey().get(USAGE_WAITING) or 0) <= 130
            usage.ingest()
            await asyncio.sleep(0.001)
    assert found == ids(0, 3_000)
    assert ticks.valkey().get(USAGE_WAITING) == b"0"
    assert sink.dropped == 0
    ticks.valkey().close()


async def test_what_neither_valkey_nor_the_file_takes_is_dropped_oldest_first_and_counted(
    valkey_server: ValkeyServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(metering, "BUFFER_RECORDS", 10)
    valkey_server.stop()
    size = len(encode_line(Usage("000000", 1.0, "/v1/x", 200, 1.0))) + 1
    async with sinking(valkey_server.url, tmp_path, size * 5) as sink:
        put(sink, 0, 5)
        await until(lambda: sink.spooled_bytes == size * 5)
        put(sink, 5, 22)
        assert sink.dropped == 7
        valkey_server.start()
        await until(lambda: not sink.buffered and not sink.spooled_bytes)
        put(sink, 22, 23)
    assert await read(valkey_server.url) == ids(0, 5) + ids(12, 23)
    assert sink.dropped == 7
    assert caplog.text.count("usage records are lost") == 1


async def test_records_that_are_left_when_all_fails_are_counted(
    valkey_server: ValkeyServer, tmp_path: Path
) -> None:
    valkey_server.stop()
    (tmp_path / "usage").write_text("not a folder")
    async with sinking(valkey_server.url, tmp_path / "usage") as sink:
        put(sink, 0, 5)
    assert sink.dropped == 5


async def test_a_record_in_memory_is_on_the_disk_soon(
    valkey_server: ValkeyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed edge loses is what has come since, not since Valkey was last tried."""
    valkey_server.stop()
    monkeypatch.setattr(metering, "_RETRY_SECONDS", 600.0)
    async with sinking(valkey_server.url, tmp_path) as sink:
        put(sink, 0, 1)
        await until(lambda: sink.spooled_bytes)
        put(sink, 1, 2)
        await until(lambda: not sink.buffered)
