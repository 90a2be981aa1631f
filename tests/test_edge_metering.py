"""Usage records, metrics, and counts that never leak."""

import asyncio
import contextlib
import json
import logging
import random
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.edge.metering import UsageSink
from gateway.models import UsageRecord
from gateway.usage import ingest
from lanes import ticks
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import MEMBER, OWNER, STRANGER, Running, bearer, edge_at, grant, lane, until
from tests.edge_harness import upstream as upstream_at
from tests.edge_processes import edge_process, publishing
from tests.metering_cast import records
from wire.edges import USAGE_STREAM

pytestmark = pytest.mark.valkey


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url) as running:
        yield running


async def test_a_request_is_recorded_with_its_tokens_and_never_its_words(edge: Running) -> None:
    async with upstreams.running(upstreams.llama) as fake:
        mine = grant(OWNER, 0, 1e11, booking_id=42)
        await edge.publish(lane(upstream=upstream_at(fake.url), grants=(mine,)))
        for stream in (False, True):
            await edge.chat(model="qwen", stream=stream, secret="a word")
    entries = await records(edge.publisher.client, 2)
    for usage in entries:
        assert (usage.owner_id, usage.token_id, usage.booking_id) == (OWNER, OWNER * 10, 42)
        assert (usage.lane, usage.preset, usage.status, usage.code) == ("main", "qwen", 200, "")
        assert (usage.prompt_tokens, usage.completion_tokens) == (7, 3)
        assert usage.route == "/v1/chat/completions"
        assert usage.bytes_in > 0
        assert usage.bytes_out > 0
        assert usage.first_byte_ms is not None
        assert 0 < usage.first_byte_ms <= usage.duration_ms
    assert len({usage.request_id for usage in entries}) == 2
    raw = await edge.publisher.client.xrange(USAGE_STREAM)
    assert b"a word" not in repr(raw).encode()


async def test_refused_and_broken_off_requests_are_recorded_strangers_are_not(
    edge: Running,
) -> None:
    async with upstreams.running(upstreams.hangs) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        await edge.chat(model="nope")
        await edge.chat(owner=STRANGER)
        request = asyncio.create_task(edge.chat(owner=MEMBER))
        await until(lambda: fake.seen)
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        refused, left = await records(edge.publisher.client, 2)
    assert (refused.status, refused.code, refused.lane) == (404, "model_not_found", "")
    assert (left.status, left.is_aborted, left.owner_id) == (499, True, MEMBER)


async def test_a_request_whose_token_is_revoked_meanwhile_is_recorded(edge: Running) -> None:
    async with upstreams.running(upstreams.answers_when_released) as fake:
        served = lane(upstream=upstream_at(fake.url))
        await edge.publish(served)
        request = asyncio.create_task(edge.chat())
        await until(lambda: fake.seen)
        await edge.publish(served, entries={})
        fake.release.set()
        assert (await request).status_code == 200
        (usage,) = await records(edge.publisher.client, 1)
    assert (usage.owner_id, usage.lane, usage.completion_tokens) == (OWNER, "main", 3)


async def test_records_wait_for_a_valkey_that_is_away(valkey_server: ValkeyServer) -> None:
    async with edge_at(valkey_server.url) as edge:
        await edge.publish(lane())
        valkey_server.stop()
        await edge.chat(model="nope")
        valkey_server.start()
        assert len(await records(edge.publisher.client, 1)) == 1


async def test_an_edge_ends_though_its_loops_swallow_a_cancellation(
    valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def deaf_once(self: UsageSink) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.Event().wait()

    monkeypatch.setattr(UsageSink, "run", deaf_once)
    async with edge_at(valkey_server.url) as edge:
        edge.server.should_exit = True


async def test_a_record_has_the_cached_tokens_and_the_time_in_the_queue(edge: Running) -> None:
    async with upstreams.running(upstreams.answers_when_released) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url, slots=1)))
        requests = [asyncio.create_task(edge.chat()) for _ in range(2)]
        await until(lambda: edge.edge.gate.waiting.get("main") and fake.seen)
        fake.release.set()
        await asyncio.gather(*requests)
    first, second = await records(edge.publisher.client, 2)
    assert (first.queue_ms, first.cached_tokens, first.is_estimated) == (0.0, None, False)
    assert 0 < second.queue_ms < second.duration_ms


@pytest.mark.parametrize(
    ("path", "answer", "expected"),
    [
        (
            "/v1/messages",
            {"usage": {"input_tokens": 1, "cache_read_input_tokens": 4}},
            (5, None, 4),
        ),
        ("/completion", {"timings": {"cache_n": 3, "prompt_n": 4, "predicted_n": 9}}, (7, 9, 3)),
        ("/v1/embeddings", {"usage": {"prompt_tokens": 5, "total_tokens": 5}}, (5, 0, None)),
        ("/v1/messages/count_tokens", {"input_tokens": 32}, (None, None, None)),
        ("/v1/chat/completions", {"choices": []}, (None, None, None)),
    ],
)
async def test_tokens_of_other_routes(
    edge: Running, path: str, answer: dict[str, Any], expected: tuple[int | None, ...]
) -> None:
    async def answers(_: object, __: object, writer: asyncio.StreamWriter) -> None:
        writer.write(upstreams.response(json.dumps(answer).encode()))
        await writer.drain()

    async with upstreams.running(answers) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        await edge.client.post(path, json={}, headers=bearer(OWNER))
    (usage,) = await records(edge.publisher.client, 1)
    found = (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
    assert (found, usage.route, usage.is_estimated) == (expected, path, False)


async def test_the_tokens_of_a_stream_whose_client_left_are_estimated_and_marked(
    edge: Running,
) -> None:
    async with upstreams.running(upstreams.streams_for_ever) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        body, events = {"stream": True}, 0
        async with edge.client.stream(
            "POST", "/v1/chat/completions", json=body, headers=bearer(OWNER)
        ) as answer:
            async for line in answer.aiter_lines():
                events += line.startswith("data:")
                if events == 9:
                    break
        (usage,) = await records(edge.publisher.client, 1)
    assert (usage.is_aborted, usage.status, usage.is_estimated) == (True, 200, True)
    assert usage.completion_tokens is not None
    assert 9 <= usage.completion_tokens < 1_000
    assert usage.prompt_tokens is None  # nobody has said, so nobody guesses


async def test_the_tokens_of_a_stream_that_broke_off_are_estimated(edge: Running) -> None:
    async with upstreams.running(upstreams.dies_mid_stream) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        await edge.chat(stream=True)
        (usage,) = await records(edge.publisher.client, 1)
    assert (usage.completion_tokens, usage.is_estimated) == (1, True)
    assert (usage.is_aborted, usage.code) == (False, "upstream_failed")


@pytest.mark.parametrize("stream", [True, False])
async def test_clients_that_leave_at_any_moment_leak_no_count_and_no_connection(
    edge: Running, stream: bool
) -> None:
    """A hundred requests, each broken off a little later than the one before."""
    chance = random.Random(1)
    behaviours = [upstreams.llama, upstreams.hangs, upstreams.streams_for_ever]

    async def any_of(*given: object) -> None:
        await chance.choice(behaviours)(*given)  # type: ignore[arg-type]

    async with upstreams.running(any_of) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        for number in range(100):
            request = asyncio.create_task(
                edge.client.post("/v1/chat/completions", json={"stream": stream}, headers=bearer(1))
            )
            await asyncio.wait({request}, timeout=number * 0.0002)
            request.cancel()
            await asyncio.gather(request, return_exceptions=True)
        await until(lambda: edge.in_flight == 0)
        await until(lambda: fake.open_connections <= 1)  # an idle one may be kept
    assert not edge.edge.gate.in_flight


@pytest.mark.django_db
def test_no_word_of_a_prompt_or_an_answer_is_kept_anywhere(
    valkey_server: ValkeyServer, valkey: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In no file, not in Valkey, the database or the log."""
    marker = "xyzzy-marker"

    async def answers(seen: upstreams.Seen, _: object, writer: asyncio.StreamWriter) -> None:
        assert marker.encode() in seen.body
        event = upstreams.event(marker, usage=upstreams.USAGE)
        writer.write(upstreams.STREAM_HEAD + upstreams.chunk(event) + b"0\r\n\r\n")
        await writer.drain()

    async def ask() -> tuple[bytes, Any]:
        async with (
            upstreams.running(answers) as fake,
            edge_at(valkey, usage_folder=tmp_path) as edge,
        ):
            await edge.publish(lane(upstream=upstream_at(fake.url)))
            valkey_server.signal(signal.SIGSTOP)
            answer = await edge.chat(stream=True, prompt=marker)
            assert marker in answer.text
            await until(lambda: edge.edge.usage.spooled_bytes)
            written = b"".join(path.read_bytes() for path in tmp_path.rglob("*.jsonl"))
            valkey_server.signal(signal.SIGCONT)
            await until(lambda: not edge.edge.usage.spooled_bytes)
            return written, await edge.publisher.client.xrange(USAGE_STREAM)

    caplog.set_level(logging.DEBUG)
    written, entries = asyncio.run(ask())
    assert ingest().entries
    ticks.valkey().close()
    rows = list(UsageRecord.objects.values())
    assert [row["prompt_tokens"] for row in rows] == [7]
    assert b'"prompt_tokens":7' in written
    for kept in (written, entries, rows, caplog.text):
        assert marker not in repr(kept)


@pytest.mark.process
async def test_a_killed_edge_s_records_are_sent_by_the_next(
    valkey_server: ValkeyServer, tmp_path: Path
) -> None:
    settings = {"SLOTSERVE_USAGE_DIR": str(tmp_path)}
    async with publishing(valkey_server.url) as publisher:
        await publisher.publish(lane())
        with edge_process(valkey_server.url, settings=settings) as edge:
            await edge.is_ready()
            valkey_server.stop()
            async with httpx.AsyncClient(
                base_url=edge.url, headers=bearer(OWNER), timeout=60
            ) as client:
                for _ in range(50):
                    await client.post("/v1/chat/completions", json={"model": "nope"})
            await until(lambda: _lines(tmp_path) == 50)
            edge.popen.kill()
        valkey_server.start()
        with edge_process(valkey_server.url, settings=settings):
            found = await records(publisher.client, 50, seconds=30)
            await until(lambda: _lines(tmp_path) == 0)
        assert len({usage.request_id for usage in found}) == 50


def _lines(folder: Path) -> int:
    lines = 0
    for path in folder.rglob("*.jsonl"):
        with contextlib.suppress(FileNotFoundError):  # all of it has just been sent
            lines += path.read_bytes().count(b"\n")
    return lines
