"""The head of an answer goes out with the first piece of its body, if that has come already."""

import asyncio
from typing import Any, cast

import pytest

from tests import upstreams
from tests.edge_harness import OWNER, Running, bearer, lane
from tests.edge_harness import upstream as upstream_at
from wire.http_answers import AnswerLine

pytest_plugins = ["tests.edge_fixtures"]


class _Recording:
    """A transport that tells what was written, and in how many writes."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        assert not self.is_closed
        self.written.append(data)

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed


class _Cycle:
    """A request of uvicorn's, as far as its answer's transport goes."""

    chunked_encoding = response_started = True
    response_complete = False

    def __init__(self, transport: _Recording) -> None:
        self.transport = transport


class _Flow:
    """A client's reading."""

    write_paused = False


@pytest.fixture
def below() -> _Recording:
    return _Recording()


@pytest.fixture
def cycle(below: _Recording) -> _Cycle:
    return _Cycle(below)


@pytest.fixture
def line(below: _Recording, cycle: _Cycle) -> AnswerLine:
    return AnswerLine(cast(Any, cycle), cast(Any, below), cast(Any, _Flow()))


def test_what_is_held_goes_out_with_the_next_write(
    below: _Recording, cycle: _Cycle, line: AnswerLine
) -> None:
    line.hold_head()
    cycle.transport.write(b"head")
    assert below.written == []
    cycle.transport.write(b"body")
    cycle.transport.write(b"more")
    assert below.written == [b"headbody", b"more"]
    assert cycle.transport is below


def test_what_is_held_goes_out_before_the_end(
    below: _Recording, cycle: _Cycle, line: AnswerLine
) -> None:
    line.hold_head()
    cycle.transport.write(b"head")
    cycle.transport.close()
    assert (below.written, below.is_closed) == ([b"head"], True)


def test_the_rest_of_a_transport_is_there(cycle: _Cycle, line: AnswerLine) -> None:
    line.hold_head()
    transport = cycle.transport
    transport.close()
    assert transport.is_closing()


def test_a_client_that_has_left_is_written_nothing(below: _Recording, line: AnswerLine) -> None:
    assert line.takes_chunks()
    line.write_chunk(b"data")
    below.close()
    assert not line.takes_chunks()
    assert below.written == [b"4\r\ndata\r\n"]


@pytest.mark.valkey
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_head_waits_for_no_body_that_is_not_there(edge: Running, method: str) -> None:
    async def answers(
        seen: upstreams.Seen, _: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        whole = upstreams.response(b"{}")
        writer.write(whole[:-2])
        await writer.drain()
        if seen.method == "GET":
            await seen.release.wait()
            writer.write(whole[-2:])

    async with upstreams.running(answers) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        async with (
            asyncio.timeout(30),
            edge.client.stream(method, "/props", headers=bearer(OWNER)) as answer,
        ):
            assert answer.headers["content-length"] == "2"
            fake.release.set()
            assert await answer.aread() == (b"{}" if method == "GET" else b"")
