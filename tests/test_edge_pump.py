"""Streams arrive whole and in order, however server and client behave; nothing is kept of them."""

import asyncio
import random

import pytest

from gateway.edge.answer import Answer
from gateway.edge.pump import Pump
from tests import upstreams
from tests.bare_client import connected, head_of
from tests.conftest import ValkeyServer
from tests.edge_harness import OWNER, Running, bearer, edge_at, key_of, lane, until
from tests.edge_harness import upstream as upstream_at
from tests.edge_processes import edge_process, publishing

pytest_plugins = ["tests.edge_fixtures"]
pytestmark = pytest.mark.valkey
_BODY = b'{"messages": [], "stream": true}'
_REQUEST = (
    f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    f"x-api-key: {key_of(OWNER)}\r\nContent-Length: {len(_BODY)}\r\n\r\n"
).encode() + _BODY


def _streams(pieces: list[bytes], chance: random.Random) -> upstreams.Behaviour:
    """An answer in these chunks, whose packets end anywhere."""
    whole = upstreams.STREAM_HEAD + b"".join(map(upstreams.chunk, pieces)) + b"0\r\n\r\n"

    async def answer(
        _: upstreams.Seen, __: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        at = 0
        while at < len(whole):
            size = chance.choice((1, 7, 200, 5_000, 300_000))
            writer.write(whole[at : at + size])
            at += size
            await writer.drain()
            await asyncio.sleep(chance.choice((0, 0, 0, 0.001)))

    return answer


def _pieces(chance: random.Random, count: int) -> list[bytes]:
    letters = (bytes([97 + number % 26]) for number in range(count))
    return [b"data: %b\n\n" % (one * chance.choice((1, 30, 2_000, 100_000))) for one in letters]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_slow", [False, True])
async def test_a_stream_arrives_whole_and_in_order(
    edge: Running, seed: int, *, is_slow: bool
) -> None:
    chance = random.Random(seed)
    pieces = _pieces(chance, 60)
    async with asyncio.timeout(30), upstreams.running(_streams(pieces, chance)) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        async with connected(edge) as (reader, writer):
            writer.write(_REQUEST)
            await head_of(reader)
            got = await _dechunked(reader, 0.002 if is_slow else 0.0)
        await until(lambda: edge.in_flight == 0)
    assert got == b"".join(pieces)


async def _dechunked(reader: asyncio.StreamReader, pause: float) -> bytes:
    found = []
    while size := int(await reader.readline(), 16):
        found.append(await reader.readexactly(size))
        assert await reader.readexactly(2) == b"\r\n"
        await asyncio.sleep(pause)
    return b"".join(found)


async def test_chunks_of_a_stream_wake_no_task(
    edge: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What this is for: one rest of the task, however many chunks come."""
    rests = 0
    run = Pump.run

    async def counted(self: Pump) -> None:
        nonlocal rests
        rests += 1
        await run(self)

    async def answers(
        _: upstreams.Seen, __: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(upstreams.STREAM_HEAD)
        for _number in range(20):
            writer.write(upstreams.chunk(b"data: x\n\n"))
            await asyncio.sleep(0.005)
        writer.write(b"0\r\n\r\n")

    writes = 0
    write = Answer.write

    async def written(self: Answer, chunk: bytes, *, is_last: bool = False) -> None:
        nonlocal writes
        writes += 1
        await write(self, chunk, is_last=is_last)

    monkeypatch.setattr(Pump, "run", counted)
    monkeypatch.setattr(Answer, "write", written)
    async with upstreams.running(answers) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        answer = await edge.client.post(
            "/v1/chat/completions", content=_BODY, headers=bearer(OWNER)
        )
    assert answer.text == "data: x\n\n" * 20
    assert 1 <= rests <= 2
    assert writes <= 2


@pytest.mark.parametrize("kind", [b"text/event-stream", b"application/json"])
async def test_a_server_that_goes_on_speaking_is_not_silent(
    valkey_server: ValkeyServer, kind: bytes
) -> None:
    """Each packet counts, not the whole answer."""

    async def answers(
        _: upstreams.Seen, __: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ntransfer-encoding: chunked\r\n\r\n"
        writer.write(head % kind)
        for _number in range(10):
            await asyncio.sleep(0.3)
            writer.write(upstreams.chunk(b"data: x\n\n"))
        writer.write(b"0\r\n\r\n")

    async with (
        edge_at(valkey_server.url, answer_seconds=1.0) as edge,
        upstreams.running(answers) as fake,
    ):
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        answer = await edge.chat(stream=True)
    assert answer.text == "data: x\n\n" * 10


@pytest.mark.process
async def test_streams_arrive_whole_from_a_process_of_its_own(valkey: str) -> None:
    """On the loop of production, whose transports differ from asyncio's."""
    chance = random.Random(7)
    pieces = _pieces(chance, 60)
    with edge_process(valkey) as process:
        async with (
            asyncio.timeout(60),
            upstreams.running(_streams(pieces, chance)) as fake,
            publishing(valkey) as publisher,
        ):
            await publisher.publish(lane(upstream=upstream_at(fake.url)))
            await process.is_ready()
            for pause in (0.0, 0.002):
                reader, writer = await asyncio.open_connection("127.0.0.1", process.port)
                writer.write(_REQUEST)
                await head_of(reader)
                assert await _dechunked(reader, pause) == b"".join(pieces)
                writer.close()
        assert "Traceback" not in process.said()


@pytest.mark.process
@pytest.mark.parametrize("ahead", [0, 2])
async def test_clients_that_leave_a_running_stream_cost_a_process_nothing(
    valkey: str, ahead: int
) -> None:
    """Whoever else streams from the same server goes on."""

    async def answers(
        _: upstreams.Seen, __: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(upstreams.STREAM_HEAD)
        while True:
            writer.write(upstreams.chunk(b"data: x\n\n"))
            await writer.drain()
            await asyncio.sleep(0.001)

    with edge_process(valkey) as process:
        async with (
            asyncio.timeout(60),
            upstreams.running(answers) as fake,
            publishing(valkey) as publisher,
        ):
            await publisher.publish(lane(upstream=upstream_at(fake.url)))
            await process.is_ready()
            kept, stays = await asyncio.open_connection("127.0.0.1", process.port)
            stays.write(_REQUEST)
            for _number in range(20):
                reader, writer = await asyncio.open_connection("127.0.0.1", process.port)
                writer.write(_REQUEST * (1 + ahead))
                await head_of(reader)
                await reader.readline()
                writer.transport.abort()
            await until(lambda: fake.open_connections == 1)
            await kept.readexactly(10_000)
            stays.transport.abort()
            await until(lambda: fake.open_connections == 0)
        assert "Traceback" not in process.said()
