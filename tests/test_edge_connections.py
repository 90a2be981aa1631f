"""Connections to model servers are used by one request at a time, and only when nothing is left."""

import asyncio

import pytest

from gateway.edge.answer import Answer
from tests import upstreams
from tests.bare_client import connected
from tests.edge_harness import OWNER, Running, bearer, key_of, lane, until
from tests.edge_harness import upstream as upstream_at
from wire.http_protocol import MOST_AHEAD

pytest_plugins = ["tests.edge_fixtures"]
pytestmark = pytest.mark.valkey


async def test_a_client_that_leaves_ends_no_other_request(
    edge: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its server has sent all; the connection must not be another's before the client has it."""
    writing = asyncio.Event()
    write = Answer.write

    async def stalls_at_first(self: Answer, chunk: bytes, *, is_last: bool = False) -> None:
        if not writing.is_set():
            writing.set()
            await asyncio.sleep(60)
        await write(self, chunk, is_last=is_last)

    async def answers(
        seen: upstreams.Seen, _: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if len(fake.seen) == 2:
            await seen.release.wait()
        writer.write(upstreams.response(b"%d" % len(fake.seen)))
        await writer.drain()

    monkeypatch.setattr(Answer, "write", stalls_at_first)
    async with upstreams.running(answers) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        leaving = asyncio.create_task(edge.client.get("/props", headers=bearer(OWNER)))
        await writing.wait()
        other = asyncio.create_task(edge.client.get("/props", headers=bearer(OWNER)))
        await until(lambda: len(fake.seen) == 2)
        leaving.cancel()
        await until(lambda: edge.in_flight == 1)
        fake.release.set()
        answer = await other
    assert (answer.status_code, answer.content) == (200, b"2")


async def test_an_answer_that_nobody_asked_for_is_given_to_nobody(edge: Running) -> None:
    async def answers(
        _: upstreams.Seen, __: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(upstreams.response(b"%d" % len(fake.seen)))
        await writer.drain()
        if len(fake.seen) == 1:
            await asyncio.sleep(0.1)  # the connection is idle by now
            writer.write(upstreams.response(b"stale"))
            await writer.drain()

    async with upstreams.running(answers) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        first = await edge.client.get("/props", headers=bearer(OWNER))
        await asyncio.sleep(0.3)
        second = await edge.client.get("/props", headers=bearer(OWNER))
    assert [first.content, second.content] == [b"1", b"2"]


@pytest.mark.parametrize("ahead", [1, MOST_AHEAD - 1])
async def test_a_client_that_asks_ahead_and_leaves_is_noticed(edge: Running, ahead: int) -> None:
    body = b'{"messages": []}'
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nx-api-key: {key_of(OWNER)}\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    async with upstreams.running(upstreams.hangs) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        async with connected(edge) as (_, writer):
            writer.write(request)
            await until(lambda: edge.in_flight == 1)
            for _ in range(ahead):
                writer.write(request)
                await asyncio.sleep(0.05)
        await until(lambda: edge.in_flight == 0)
        assert len(fake.seen) == 1


async def test_of_a_client_that_asks_far_ahead_no_more_is_read(edge: Running) -> None:
    request = b"GET /props HTTP/1.1\r\nHost: x\r\nx-api-key: %b\r\n\r\n" % key_of(OWNER).encode()
    async with upstreams.running(upstreams.hangs) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        async with connected(edge) as (_, writer):
            for _number in range(2 * MOST_AHEAD):
                writer.write(request)
                await writer.drain()
                await asyncio.sleep(0.03)
            held = edge.server.server_state.connections
            (protocol,) = [each for each in held if getattr(each, "pipeline", None)]
            assert len(protocol.pipeline) == MOST_AHEAD  # type: ignore[union-attr]
            edge.edge.gate.end_all()
