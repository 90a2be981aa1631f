"""A large body on its way up, and the answer that comes meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import aiohttp
import pytest

from gateway.edge.asking import ask
from gateway.edge.exchange import Exchange
from gateway.edge.routing import Route
from gateway.edge.spool import Spool, SpoolBudget
from gateway.edge.upload import Upload
from gateway.edge.upstreams import NotSentError, Server
from tests.edge_harness import until, upstream
from tests.upstreams import response

_LARGE = 32 * 2**20  # more than the sockets' buffers take
_SOME = 2**20


class _Reached:
    """The server's end of the only connection."""

    def __init__(self) -> None:
        self.connection: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
        self.connection = asyncio.get_running_loop().create_future()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connection.set_result((reader, writer))


@pytest.fixture
async def reached() -> _Reached:
    return _Reached()


@pytest.fixture
async def server(reached: _Reached) -> AsyncIterator[Server]:
    listening = await asyncio.start_server(reached.accept, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=2)
    server = Server(upstream(url), "key", timeout)
    yield server
    await server.session.close()
    if reached.connection.done():
        reached.connection.result()[1].close()
    listening.close()
    await listening.wait_closed()


async def test_a_body_that_ends_after_its_answer_starts_no_waiting(
    server: Server, reached: _Reached
) -> None:
    """Nobody waits for the server any more: it would be taken for silent."""
    exchange = Exchange(cast(Route, None), lambda: True)
    body = Spool(SpoolBudget(2**30))
    body.add(b"a" * _LARGE)
    unused, upload = await server.connect(), Upload(body, exchange)
    head = server.head("POST", "/x", [], _LARGE)
    asking = asyncio.create_task(ask(exchange, unused, head, upload, has_body=True))
    reader, writer = await reached.connection
    await reader.readuntil(b"\r\n\r\n")
    since = exchange.waiting_since or 0.0
    await asyncio.sleep(0.01)
    await reader.readexactly(4 * _SOME)
    await until(lambda: (exchange.waiting_since or 0.0) > since)  # it has taken a piece
    writer.write(response(b"{}"))
    answer = await asking
    assert (answer.status, await answer.content.read()) == (200, b"{}")
    was_done, exchange.waiting_since = upload.is_done, None
    await reader.readexactly(_LARGE - 4 * _SOME)
    await until(lambda: upload.is_done)
    assert (was_done, exchange.waiting_since) == (False, None)
    unused.connection.release()
    again = await server.connect()
    assert again.protocol is unused.protocol
    again.connection.close()


async def test_a_pool_that_was_closed_reaches_nobody(server: Server) -> None:
    await server.session.close()
    with pytest.raises(NotSentError):
        await server.connect()
