"""A large body on its way up, and the answer that comes meanwhile."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from gateway.edge.asking import ask
from gateway.edge.spool import Spool, SpoolBudget
from gateway.edge.upload import Upload
from gateway.edge.upstreams import NotSentError, Server
from tests.edge_harness import upstream
from tests.upstreams import response

_LARGE = 8 * 2**20  # more than the sockets' buffers take
_SILENT_SECONDS = 0.5


def _upload(size: int) -> Upload:
    body = Spool(SpoolBudget(2**30))
    body.add(b"a" * size)
    return Upload(body, _SILENT_SECONDS)


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
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=2, sock_read=_SILENT_SECONDS)
    server = Server(upstream(url), "key", timeout)
    yield server
    await server.session.close()
    if reached.connection.done():
        reached.connection.result()[1].close()
    listening.close()
    await listening.wait_closed()


async def test_a_time_that_ends_as_the_server_reads_on_is_over(server: Server) -> None:
    """The timer and the piece that it was for may come in one turn of the loop."""
    troubles: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, trouble: troubles.append(trouble))
    unused, upload = await server.connect(), _upload(_LARGE)
    head = server.head("POST", "/x", [], _LARGE)
    asking = asyncio.create_task(ask(server, unused, head, upload, has_body=True))
    await asyncio.sleep(0.2)

    def both() -> None:
        unused.protocol.resume_writing()
        upload.limit._on_timeout()  # type: ignore[attr-defined]

    loop.call_soon(both)
    with pytest.raises(TimeoutError):
        await asking
    upload.stop()
    unused.connection.close()
    await asyncio.sleep(0.05)
    assert troubles == []


async def test_a_body_that_ends_after_its_answer_leaves_no_timer(
    server: Server, reached: _Reached
) -> None:
    unused, upload = await server.connect(), _upload(_LARGE)
    head = server.head("POST", "/x", [], _LARGE)
    asking = asyncio.create_task(ask(server, unused, head, upload, has_body=True))
    reader, writer = await reached.connection
    writer.write(response(b"{}"))
    answer = await asking
    assert (answer.status, await answer.content.read()) == (200, b"{}")
    await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(_LARGE)
    while not upload.is_done:
        await asyncio.sleep(0.01)
    unused.connection.release()
    await asyncio.sleep(2 * _SILENT_SECONDS)
    again = await server.connect()
    assert again.protocol is unused.protocol
    assert again.protocol.exception() is None
    again.connection.close()


async def test_a_pool_that_was_closed_reaches_nobody(server: Server) -> None:
    await server.session.close()
    with pytest.raises(NotSentError):
        await server.connect()
