"""What model servers answer that HTTP does not have: never a 500 of ours, never asked twice."""

import asyncio

import httpx
import pytest

from tests import upstreams
from tests.edge_harness import OWNER, Running, bearer, lane
from tests.edge_harness import upstream as upstream_at

pytest_plugins = ["tests.edge_fixtures"]
pytestmark = pytest.mark.valkey


def _answers(raw: bytes) -> upstreams.Behaviour:
    async def answer(
        _: upstreams.Seen, __: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(raw)
        await writer.drain()

    return answer


async def _ask(edge: Running, raw: bytes) -> httpx.Response:
    async with upstreams.running(_answers(raw)) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        return await edge.chat()


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 600 Odd\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 999 Odd\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 099 Odd\r\ncontent-length: 2\r\n\r\n{}",
    ],
)
async def test_a_status_that_no_answer_has_is_a_502(edge: Running, raw: bytes) -> None:
    answer = await _ask(edge, raw)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_failed")


@pytest.mark.parametrize("value", [b"a\x01b", b"a\x7fb", b"a\x0bb", b"a\r\n b"])
async def test_a_header_that_cannot_be_passed_on_costs_no_answer(
    edge: Running, value: bytes
) -> None:
    head = b"HTTP/1.1 200 OK\r\nx-odd: %b\r\ncontent-type: application/json\r\n" % value
    answer = await _ask(edge, head + b"content-length: 2\r\n\r\n{}")
    assert answer.status_code in (200, 502)


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
async def test_a_length_beside_a_status_without_a_body_passes(edge: Running, status: bytes) -> None:
    answer = await _ask(edge, b"HTTP/1.1 %b\r\ncontent-length: 9\r\n\r\n" % status)
    assert answer.status_code == int(status[:3])
    assert answer.content == b""


async def test_a_read_whose_first_byte_was_sent_is_never_sent_again(edge: Running) -> None:
    async def answers_once(
        _: upstreams.Seen, __: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if len(fake.seen) == 1:
            writer.write(upstreams.response(b"{}"))
            await writer.drain()
        else:
            writer.close()

    async with upstreams.running(answers_once) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        read = [await edge.client.get("/props", headers=bearer(OWNER)) for _ in range(2)]
        assert [answer.status_code for answer in read] == [200, 502]
        assert len(fake.seen) == 2
