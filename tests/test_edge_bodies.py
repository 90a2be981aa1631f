"""Bodies over real sockets: spooled, bounded, given back, and sent up as the server takes them."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.edge.refusals import EdgeRefusal
from gateway.edge.spool import MIDDLING_BYTES, MIDDLING_TOGETHER_BYTES, Spool, SpoolBudget
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import OWNER, Running, bearer, edge_at, key_of, lane, until
from tests.edge_harness import upstream as upstream_at

CHAT = "/v1/chat/completions"
LARGE = b'{"x":"' + b"a" * 3_000_000 + b'","model":"qwen"}'
HEAD = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key_of(OWNER)}\r\n".encode()


def _files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url, spool_bytes=8 * 2**20) as running:
        yield running
        await until(lambda: running.edge.parts.spools.used == 0)


@pytest.mark.parametrize("size", [0, 1, MIDDLING_BYTES, MIDDLING_BYTES + 1, 5_000_000])
def test_a_body_can_be_read_again_and_leaves_nothing(size: int, tmp_path: Path) -> None:
    budget, before = SpoolBudget(8 * 2**20, tmp_path), _files()
    body, sent = Spool(budget), os.urandom(size)
    for at in range(0, size, 70_000):
        assert body.add(sent[at : at + 70_000]) is None
    assert b"".join(body.pieces()) == b"".join(body.pieces()) == sent
    assert (body.whole() is None) == (size > MIDDLING_BYTES)
    assert (budget.used, os.listdir(tmp_path)) == (size, [])
    body.close()
    body.close()
    assert (budget.used, budget.middling) == (0, 0)
    soon = time.monotonic() + 5
    while _files() != before and time.monotonic() < soon:
        time.sleep(0.001)
    assert _files() == before


def test_middling_bodies_are_in_memory_as_long_as_there_are_few(tmp_path: Path) -> None:
    budget = SpoolBudget(2**30, tmp_path)
    bodies = [Spool(budget) for _ in range(20)]
    for body in bodies:
        assert body.add(b"a" * MIDDLING_BYTES) is None
    in_memory = [body for body in bodies if body.whole() is not None]
    assert len(in_memory) == MIDDLING_TOGETHER_BYTES // MIDDLING_BYTES
    assert all(b"".join(body.pieces()) == b"a" * MIDDLING_BYTES for body in bodies)
    for body in bodies:
        body.close()
    assert (budget.used, budget.middling) == (0, 0)


def test_a_body_over_the_budget_or_without_a_disk_is_a_503(tmp_path: Path) -> None:
    for budget in (SpoolBudget(600_000), SpoolBudget(2**23, tmp_path / "nowhere")):
        body = Spool(budget)
        assert body.add(b"a" * 200_000) is None
        refusal = body.add(b"a" * 5_000_000)
        assert isinstance(refusal, EdgeRefusal)
        assert (refusal.status, refusal.code, refusal.retry_after) == (503, "gateway_busy", 5)
        body.close()
        assert budget.used == 0


@pytest.mark.valkey
async def test_bodies_over_the_budget_wait_for_another_time(edge: Running) -> None:
    async with upstreams.running(upstreams.hangs) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url, slots=1)))
        first = [asyncio.create_task(edge.chat())]
        await until(lambda: fake.seen)
        first += [
            asyncio.create_task(edge.client.post(CHAT, content=LARGE, headers=bearer(OWNER)))
            for _ in range(2)
        ]
        await until(lambda: edge.edge.gate.waiting == {"main": 2})
        assert edge.edge.parts.spools.used > 2 * len(LARGE)
        answer = await edge.client.post(CHAT, content=LARGE, headers=bearer(OWNER))
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "gateway_busy")
        assert "retry-after" in answer.headers
        for task in first:
            task.cancel()
        await asyncio.gather(*first, return_exceptions=True)


@pytest.mark.valkey
async def test_a_client_that_leaves_in_its_upload_leaves_nothing_behind(edge: Running) -> None:
    await edge.publish(lane())
    before = _files()
    _, writer = await upstreams.connect(edge.url)
    writer.write(HEAD + b"Content-Length: 5000000\r\n\r\n" + LARGE[:2_000_000])
    await until(lambda: edge.edge.parts.spools.used == 2_000_000)
    writer.transport.abort()
    await until(lambda: edge.edge.parts.spools.used == 0)
    await until(lambda: _files() <= before)


@pytest.mark.valkey
async def test_a_server_that_answers_before_it_has_read_all_is_heard(edge: Running) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(upstreams.response(b'{"error":"no"}', status="413 Payload Too Large"))
        await writer.drain()
        while await reader.read(65_536):
            await asyncio.sleep(0)
        writer.close()

    body = b'{"x":"' + b"a" * 7_500_000 + b'"}'
    async with await asyncio.start_server(serve, "127.0.0.1", 0, limit=1024) as server:
        port = server.sockets[0].getsockname()[1]
        await edge.publish(lane(upstream=upstream_at(f"http://127.0.0.1:{port}")))
        answer = await edge.client.post(CHAT, content=body, headers=bearer(OWNER))
        assert (answer.status_code, answer.json()) == (413, {"error": "no"})
        assert edge.in_flight == 0


@pytest.mark.valkey
@pytest.mark.parametrize("is_large", [True, False])
async def test_a_body_of_a_get_is_refused(edge: Running, *, is_large: bool) -> None:
    await edge.publish(lane())
    content = b"{}" * (100_000 if is_large else 1)
    answer = await edge.client.request("GET", "/props", content=content, headers=bearer(OWNER))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_request_error")


@pytest.mark.valkey
async def test_a_packed_body_is_refused(edge: Running) -> None:
    await edge.publish(lane())
    headers = bearer(OWNER) | {"content-encoding": "gzip"}
    answer = await edge.client.post(CHAT, content=b"\x1f\x8b", headers=headers)
    assert answer.status_code == 400
    assert "plain" in answer.json()["error"]["message"]


@pytest.mark.valkey
async def test_a_client_that_waits_for_100_continue_is_told_to_go_on(edge: Running) -> None:
    async with upstreams.running(upstreams.echoes) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        reader, writer = await upstreams.connect(edge.url)
        writer.write(HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        writer.write(b"{}")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        writer.close()
        await writer.wait_closed()


@pytest.mark.valkey
@pytest.mark.parametrize("model", ["qwen", "smol"])
async def test_the_model_behind_a_large_text_is_found(edge: Running, model: str) -> None:
    body = LARGE.replace(b"qwen", model.encode())
    async with upstreams.running(upstreams.echoes) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        answer = await edge.client.post(CHAT, content=body, headers=bearer(OWNER))
        assert answer.status_code == (200 if model == "qwen" else 409)
        assert [seen.body for seen in fake.seen] == ([body] if model == "qwen" else [])


@pytest.mark.valkey
async def test_a_server_that_stops_reading_is_given_up(valkey_server: ValkeyServer) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.wait({asyncio.ensure_future(over.wait())})
        writer.transport.abort()

    over = asyncio.Event()
    body = b'{"x":"' + b"a" * 30_000_000 + b'"}'
    async with (
        edge_at(valkey_server.url, answer_seconds=0.5) as edge,
        await asyncio.start_server(serve, "127.0.0.1", 0, limit=1024) as server,
    ):
        port = server.sockets[0].getsockname()[1]
        await edge.publish(lane(upstream=upstream_at(f"http://127.0.0.1:{port}")))
        answer = await edge.client.post(CHAT, content=body, headers=bearer(OWNER))
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_failed")
        assert edge.edge.parts.spools.used == edge.in_flight == 0
        over.set()
