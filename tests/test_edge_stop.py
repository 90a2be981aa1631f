"""The stop of one process, edge or web: what its clients see of it."""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import uvicorn

from gateway.edge.server import is_news
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import Running, edge_at, lane
from tests.edge_harness import upstream as upstream_at
from tests.edge_processes import Kept, edge_process, load, publishing, reports, soon
from wire.http_protocol import LINGER_SECONDS, GuardedProtocol

pytestmark = pytest.mark.valkey
NOT_YET = 0.3  # seconds; the stop has begun, nothing has been closed


@pytest.fixture
async def fake() -> AsyncIterator[upstreams.FakeServer]:
    async with upstreams.running(upstreams.llama) as server:
        yield server


@pytest.fixture
async def edge(valkey_server: ValkeyServer, fake: upstreams.FakeServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url, stop_seconds=2.0) as running:
        await running.publish(lane(upstream=upstream_at(fake.url)))
        yield running


@contextlib.asynccontextmanager
async def kept_at(edge: Running) -> AsyncIterator[Kept]:
    """A connection that has served a request."""
    kept = Kept(int(edge.url.rpartition(":")[2]))
    try:
        assert (await kept.ask()).headers.get("connection") != "close"
        yield kept
    finally:
        kept.close()


@contextlib.contextmanager
def hung_up_by(handler: signal.Handlers) -> Iterator[None]:
    """Processes that are started meanwhile take SIGHUP so, whoever runs the tests."""
    before = signal.signal(signal.SIGHUP, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_a_request_on_a_kept_connection_is_served_while_the_edge_stops(
    edge: Running,
) -> None:
    async with kept_at(edge) as kept:
        edge.server.should_exit = True
        await soon(lambda: edge.edge.is_stopping)
        assert not await kept.is_closed(NOT_YET)
        answer = await kept.ask()
    assert (answer.status, answer.headers["connection"]) == (200, "close")


async def test_an_idle_connection_is_closed_after_a_moment(edge: Running) -> None:
    async with kept_at(edge) as kept:
        edge.server.should_exit = True
        assert await kept.is_closed(LINGER_SECONDS + 5)


async def test_a_connection_whose_answer_began_before_the_stop_may_ask_once_more(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    async def halves(seen: upstreams.Seen, _: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\na")
        await seen.release.wait()
        writer.write(b"b")

    async with kept_at(edge) as kept:
        fake.behaviour = halves
        await kept.send()
        head = await kept.receive_head()
        edge.server.should_exit = True
        await soon(lambda: edge.edge.is_stopping)
        fake.release.set()
        assert (await kept.receive(head)).headers.get("connection") != "close"
        assert (await kept.ask()).headers["connection"] == "close"


async def test_a_connection_that_nobody_has_accepted_yet_is_served(edge: Running) -> None:
    """The kernel has made it; it would be reset with the listening socket."""
    address = ("127.0.0.1", int(edge.url.rpartition(":")[2]))
    waiting: list[socket.socket] = []

    async def is_told(_: int) -> bool:
        if edge.server.should_exit:  # no turn of the loop from here to the stop
            waiting.append(socket.create_connection(address))
            waiting[0].sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        return edge.server.should_exit

    edge.server.on_tick = is_told  # type: ignore[assignment,method-assign]
    edge.server.should_exit = True
    await soon(lambda: bool(waiting))
    with waiting[0] as sock:
        answer = await asyncio.to_thread(sock.recv, 4096)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in answer


async def test_ready_says_no_from_the_stop_on(edge: Running) -> None:
    async with kept_at(edge) as kept:
        edge.server.should_exit = True
        await soon(lambda: edge.edge.is_stopping)
        answer = await kept.ask("/ready")
    assert answer.status == 503
    assert b"the gateway is being stopped" in answer.body


async def test_when_the_time_is_over_the_rest_is_ended_and_no_more_admitted(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    async with kept_at(edge) as kept:
        fake.behaviour = upstreams.hangs
        await kept.send()
        await soon(lambda: edge.in_flight)
        edge.edge.gate.end_all()
        ended, refused = await kept.receive(), await edge.chat()
    assert b"gateway_stopping" in ended.body
    assert refused.json()["error"]["code"] == "gateway_stopping"
    assert refused.headers["retry-after"]


async def test_a_request_that_does_not_end_holds_the_stop_up_no_longer_than_is_allowed(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    async with kept_at(edge) as kept:
        fake.behaviour = upstreams.hangs
        await kept.send()
        await soon(lambda: edge.in_flight)
        edge.server.should_exit = True
        answer = await kept.receive()
    assert b"gateway_stopping" in answer.body


@pytest.mark.process
@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_stop_that_was_asked_for_is_no_failure(
    valkey_server: ValkeyServer, fake: upstreams.FakeServer, asked: signal.Signals
) -> None:
    async with publishing(valkey_server.url) as publisher:
        await publisher.publish(lane(upstream=upstream_at(fake.url)))
        with hung_up_by(signal.SIG_DFL), edge_process(valkey_server.url) as edge:
            await edge.is_ready()
            edge.popen.send_signal(asked)
            assert await edge.ended() == 0
        assert (await reports(publisher))["edge"].goodbye


@pytest.mark.process
async def test_under_nohup_a_closed_terminal_ends_nothing(valkey_server: ValkeyServer) -> None:
    async with publishing(valkey_server.url) as publisher:
        await publisher.publish()
        with hung_up_by(signal.SIG_IGN), edge_process(valkey_server.url) as edge:
            await edge.is_ready()
            edge.popen.send_signal(signal.SIGHUP)
            with pytest.raises(TimeoutError):
                await edge.ended(seconds=1.0)
            edge.popen.terminate()
            assert await edge.ended() == 0


@pytest.mark.process
async def test_a_restart_on_a_socket_of_systemd_loses_no_request(
    valkey_server: ValkeyServer, fake: upstreams.FakeServer
) -> None:
    async with publishing(valkey_server.url) as publisher:
        await publisher.publish(lane(upstream=upstream_at(fake.url)))
        with socket.create_server(("127.0.0.1", 0)) as held, contextlib.ExitStack() as last:
            async with load(held.getsockname()[1], 4) as result:
                with edge_process(valkey_server.url, held=held) as edge:
                    await result.more(50)
                    edge.popen.terminate()
                    assert await edge.ended() == 0
                last.enter_context(edge_process(valkey_server.url, held=held))
                await result.more(50)
    assert result.failed == []


async def _hello(scope: Any, _: Any, send: Any) -> None:
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"hi"})


async def test_the_web_process_serves_what_is_on_its_way_too() -> None:
    config = uvicorn.Config(
        _hello,
        http=GuardedProtocol,
        lifespan="off",
        log_config=None,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    kept = Kept(listening.getsockname()[1])
    task = asyncio.create_task(server.serve(sockets=[listening]))
    await soon(lambda: server.started)
    await kept.ask("/")
    server.should_exit = True
    assert not await kept.is_closed(NOT_YET)
    assert (await kept.ask("/")).headers["connection"] == "close"
    await task


@pytest.mark.parametrize(
    ("error", "is_told"), [(asyncio.CancelledError(), False), (ValueError("odd"), True)]
)
def test_of_uvicorns_words_only_real_failures_are_told(error: BaseException, is_told: bool) -> None:
    exc_info = (type(error), error, None)
    path = "uvicorn/protocols/http/httptools_impl.py"
    record = logging.LogRecord("uvicorn.error", logging.ERROR, path, 1, "Exception", (), exc_info)
    assert is_news(record) is is_told
