"""What counts of WebSockets: nothing is left of them, and each is recorded."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.edge.app import EdgeApp
from tests import ws_upstream
from tests.conftest import ValkeyServer
from tests.edge_harness import MEMBER, OWNER, Running, edge_at, grant, key_of, until
from tests.ws_client import closed, open_socket, serve, until_counted
from wire.edges import USAGE_STREAM
from wire.usage import Usage, decode_entry

pytestmark = pytest.mark.valkey
SCOPE: dict[str, Any] = {
    "type": "websocket",
    "path": "/v1/realtime",
    "raw_path": b"/v1/realtime",
    "query_string": b"",
    "headers": [(b"authorization", f"Bearer {key_of(OWNER)}".encode())],
    "subprotocols": [],
}


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url) as running:
        yield running


class Client:
    """A client of the ASGI application that opens a WebSocket, sends once and stays or leaves."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.gone = asyncio.Event()
        self._says = iter(
            ({"type": "websocket.connect"}, {"type": "websocket.receive", "text": "Hi"})
        )

    async def receive(self) -> dict[str, Any]:
        message = next(self._says, None)
        if message is None:
            await self.gone.wait()
            return {"type": "websocket.disconnect", "code": 1005}
        return message

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)
        await asyncio.sleep(0)


@pytest.mark.parametrize("how", ["cancelled by the server", "left by the client"])
@pytest.mark.parametrize("behaviour", [ws_upstream.echoes, ws_upstream.leaves, ws_upstream.floods])
async def test_an_end_at_any_turn_of_the_loop_leaves_nothing(
    edge: Running, behaviour: ws_upstream.Behaviour, how: str
) -> None:
    async with ws_upstream.running(behaviour) as fake:
        await serve(edge, fake)
        app = EdgeApp(edge.edge)
        for turns in range(0, 80, 2):
            client = Client()
            task = asyncio.create_task(app(SCOPE, client.receive, client.send))
            for _ in range(turns):
                await asyncio.sleep(0)
            if how == "left by the client":
                client.gone.set()
            else:
                task.cancel()
            async with asyncio.timeout(30):
                await asyncio.gather(task, return_exceptions=True)
            assert edge.in_flight == 0, turns
        await until(lambda: not fake.open)


async def test_many_sessions_at_once_leave_nothing(edge: Running) -> None:
    async def one(number: int) -> None:
        async with open_socket(edge, owner=OWNER if number % 2 else MEMBER) as client:
            for each in range(20):
                await client.send(f"{number} {each}")
                assert await client.recv() == f"{number} {each}"

    async with ws_upstream.running(ws_upstream.echoes) as fake:
        await serve(edge, fake)
        await asyncio.gather(*map(one, range(100)))
        await until(lambda: edge.in_flight == 0)
        await until(lambda: not fake.open)
        await until_counted(edge, 1, 0)


async def test_a_session_is_recorded_with_its_bytes_and_never_its_words(
    edge: Running,
) -> None:
    slot = grant(OWNER, 0, 1e11, booking_id=42)
    async with ws_upstream.running(ws_upstream.echoes) as echo:
        await serve(edge, echo, grants=(slot,))
        async with open_socket(edge) as client:
            await client.send("é word")
            await client.recv()
    (usage,) = await _records(edge, 1)
    assert (usage.route, usage.status, usage.code) == ("/v1/realtime", 101, "")
    assert (usage.owner_id, usage.lane, usage.booking_id) == (OWNER, "main", 42)
    assert (usage.bytes_in, usage.bytes_out, usage.is_aborted) == (7, 7, False)
    assert usage.first_byte_ms is not None
    assert 0 < usage.first_byte_ms <= usage.duration_ms
    assert usage.completion_tokens is None


async def test_a_session_that_was_ended_or_left_is_recorded_as_that(
    edge: Running,
) -> None:
    async with ws_upstream.running(ws_upstream.hears) as fake:
        await serve(edge, fake)
        async with open_socket(edge, owner=MEMBER) as client:
            client.transport.abort()
            await until(lambda: edge.in_flight == 0)
        async with open_socket(edge) as client:
            await serve(edge, fake, generation=2, draining=True, cut=True)
            await closed(client)
    left, ended = await _records(edge, 2)
    assert (left.owner_id, left.is_aborted, left.code) == (MEMBER, True, "")
    assert (ended.owner_id, ended.is_aborted, ended.code) == (OWNER, False, "model_switching")


async def _records(edge: Running, count: int) -> list[Usage]:
    async with asyncio.timeout(30):
        while len(found := await _in_stream(edge)) < count:
            await asyncio.sleep(0.01)
    return found


async def _in_stream(edge: Running) -> list[Usage]:
    entries: Any = await edge.publisher.client.xrange(USAGE_STREAM)
    return [usage for _, fields in entries for usage in decode_entry(fields) if usage is not None]
