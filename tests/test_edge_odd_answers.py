"""What model servers answer that HTTP does not have: never a 500 of ours, never asked twice."""

import asyncio
import socket
import struct
from typing import Any

import httpx
import pytest

from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import OWNER, Running, bearer, edge_at, lane, until
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
    return await _ask_of(edge, _answers(raw))


async def _ask_of(edge: Running, server: upstreams.Behaviour, **fields: Any) -> httpx.Response:
    async with asyncio.timeout(30), upstreams.running(server) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        return await edge.chat(**fields)


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


@pytest.mark.parametrize(
    "header", [b"content-length : 2", b"x odd: 1", b"content-length: 18446744073709551615"]
)
async def test_a_header_that_is_none_costs_no_answer(
    edge: Running, header: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer(
        _: upstreams.Seen, __: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = b"HTTP/1.1 200 OK\r\nconnection: close\r\n%b\r\n\r\n" % header
        writer.write(head + b"{}")
        writer.close()

    async with upstreams.running(answer) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        got = await edge.chat()
    assert got.status_code == 502 or (got.status_code, got.content) == (200, b"{}")
    assert "Traceback" not in caplog.text


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


_CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ntransfer-encoding: chunked\r\n\r\n"
_WRONG_CHUNK = b"XX\r\nnot hexadecimal\r\n"


def _breaks_off(kind: bytes, wait: float) -> upstreams.Behaviour:
    """A good piece of an answer, and then one that is none."""

    async def answer(
        _: upstreams.Seen, __: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(_CHUNKED % kind + upstreams.chunk(upstreams.event("word")))
        await writer.drain()
        await asyncio.sleep(wait)
        writer.write(_WRONG_CHUNK)
        await writer.drain()
        await asyncio.sleep(60)

    return answer


@pytest.mark.parametrize("wait", [0.0, 0.1])
async def test_a_wrong_chunk_ends_a_stream_in_an_error_event(edge: Running, wait: float) -> None:
    async with (
        asyncio.timeout(30),
        upstreams.running(_breaks_off(b"text/event-stream", wait)) as up,
    ):
        await edge.publish(lane(upstream=upstream_at(up.url)))
        answer = await edge.chat(stream=True)
        assert "upstream_failed" in answer.text
        await until(lambda: edge.in_flight == 0)


async def test_a_wrong_chunk_cuts_an_answer_in_one_piece(edge: Running) -> None:
    async with asyncio.timeout(30), upstreams.running(_breaks_off(b"application/json", 0.1)) as up:
        await edge.publish(lane(upstream=upstream_at(up.url)))
        with pytest.raises(httpx.RemoteProtocolError):
            await edge.chat()
        await until(lambda: edge.in_flight == 0)


@pytest.mark.parametrize("greeting", [b"", b"SSH-2.0-other\r\n"])
async def test_who_closes_or_speaks_before_it_is_asked_is_no_model_server(
    edge: Running, greeting: bytes
) -> None:
    accepted = 0

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        accepted += 1
        writer.write(greeting)
        if greeting:
            await asyncio.sleep(0.5)
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with asyncio.timeout(30), server:
        port = server.sockets[0].getsockname()[1]
        await edge.publish(lane(upstream=upstream_at(f"http://127.0.0.1:{port}")))
        answer = await edge.chat()
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_failed")
    assert accepted <= 5


async def test_hints_before_an_answer_are_no_answer(edge: Running) -> None:
    hints = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
    answer = await _ask(edge, hints + upstreams.response(b"{}"))
    assert (answer.status_code, answer.content) == (200, b"{}")
    assert "link" not in answer.headers


async def test_hints_and_then_silence_are_given_up(valkey_server: ValkeyServer) -> None:
    async with edge_at(valkey_server.url, answer_seconds=0.3) as edge, asyncio.timeout(30):
        silent = _silent_after(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")
        async with upstreams.running(silent) as fake:
            await edge.publish(lane(upstream=upstream_at(fake.url)))
            answer = await edge.chat()
        assert answer.status_code == 502


def _silent_after(raw: bytes) -> upstreams.Behaviour:
    async def answer(
        _: upstreams.Seen, __: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(raw)
        await asyncio.sleep(60)

    return answer


_TO_THE_END = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n\r\n"


def _resets(kind: bytes, *, in_chunks: bool) -> upstreams.Behaviour:
    """Half an answer, and a reset of the connection."""

    async def answer(
        _: upstreams.Seen, __: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        half = b"data: half"
        head = _CHUNKED if in_chunks else _TO_THE_END
        writer.write(head % kind + (upstreams.chunk(half) if in_chunks else half))
        await asyncio.sleep(0.1)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    return answer


@pytest.mark.parametrize("in_chunks", [False, True])
async def test_half_a_stream_of_a_reset_connection_is_no_whole_one(
    edge: Running, *, in_chunks: bool
) -> None:
    behaviour = _resets(b"text/event-stream", in_chunks=in_chunks)
    answer = await _ask_of(edge, behaviour, stream=True)
    assert answer.text.startswith("data: half\n\ndata: {")
    assert "upstream_failed" in answer.text


@pytest.mark.parametrize("in_chunks", [False, True])
async def test_half_an_answer_of_a_reset_connection_is_no_whole_one(
    edge: Running, *, in_chunks: bool
) -> None:
    behaviour = _resets(b"application/json", in_chunks=in_chunks)
    with pytest.raises(httpx.RemoteProtocolError):
        await _ask_of(edge, behaviour)
