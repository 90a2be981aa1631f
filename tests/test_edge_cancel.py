"""Whatever moment is the last one: no count, no connection, no task is left."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from gateway.edge.app import EdgeApp
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import MEMBER, OWNER, Running, bearer, edge_at, grant, key_of, lane, until
from tests.edge_harness import upstream as upstream_at
from wire.http_protocol import CONNECTION

pytestmark = pytest.mark.valkey
SCOPE: dict[str, Any] = {
    "type": "http",
    "method": "POST",
    "path": "/v1/chat/completions",
    "raw_path": b"/v1/chat/completions",
    "query_string": b"",
    "headers": [(b"authorization", f"Bearer {key_of(OWNER)}".encode())],
}


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url) as running:
        yield running


class Client:
    """A client of the ASGI application that sends one request and stays or leaves."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self._gone = asyncio.Event()
        self._is_first = True
        self._when_gone: Callable[[], None] | None = None

    def of(self, scope: dict[str, Any]) -> dict[str, Any]:
        """The scope of a request on this client's connection."""
        return scope | {"extensions": {CONNECTION: self}}

    def leave(self) -> None:
        """Close the connection."""
        self._gone.set()
        if self._when_gone is not None:
            self._when_gone()

    def when_gone(self, callback: Callable[[], None] | None) -> None:
        self._when_gone = callback
        if callback is not None and self._gone.is_set():
            asyncio.get_running_loop().call_soon(callback)

    def has_whole(self, _: object) -> bool:
        return False

    def line_of(self, _: object) -> None:
        """Nothing is written but by ASGI."""

    async def receive(self) -> dict[str, Any]:
        if self._is_first:
            self._is_first = False
            return {"type": "http.request", "body": b'{"stream": true}', "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)
        await asyncio.sleep(0)


async def _for_turns(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


@pytest.mark.parametrize("how", ["cancelled by the server", "left by the client"])
@pytest.mark.parametrize(
    "behaviour", [upstreams.llama, upstreams.hangs, upstreams.streams_for_ever]
)
async def test_an_end_at_any_turn_of_the_loop_leaves_nothing(
    edge: Running, behaviour: upstreams.Behaviour, how: str
) -> None:
    async with upstreams.running(behaviour) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        app = EdgeApp(edge.edge)
        for turns in range(60):
            client = Client()
            task = asyncio.create_task(app(client.of(SCOPE), client.receive, client.send))
            await _for_turns(turns)
            if how == "left by the client":
                client.leave()
            else:
                task.cancel()
            async with asyncio.timeout(30):
                await asyncio.gather(task, return_exceptions=True)
            assert edge.in_flight == 0, turns
        await until(lambda: fake.open_connections <= 1)
    gc.collect()


@pytest.mark.parametrize("turns", range(0, 40, 3))
async def test_a_stop_at_any_turn_answers_or_ends_the_stream(edge: Running, turns: int) -> None:
    async with upstreams.running(upstreams.streams_for_ever) as fake:
        here = lane(upstream=upstream_at(fake.url))
        await edge.publish(here)
        client = Client()
        call = EdgeApp(edge.edge)(client.of(SCOPE), client.receive, client.send)
        task = asyncio.create_task(call)
        await _for_turns(turns)
        await edge.publish(lane(upstream=None, phase="stopped", target=None))
        async with asyncio.timeout(30):
            await task
        assert client.sent[-1]["more_body"] is False
        text = b"".join(message.get("body", b"") for message in client.sent)
        assert b"model_switching" in text or b"no_model_loaded" in text
        await until(lambda: fake.open_connections == 0)


async def test_a_slot_that_begins_while_connecting_is_seen_before_the_first_byte(
    edge: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    connecting, go_on = asyncio.Event(), asyncio.Event()
    real = aiohttp.TCPConnector.connect

    async def slowly(self: Any, *arguments: Any) -> Any:
        connecting.set()
        await go_on.wait()
        return await real(self, *arguments)

    monkeypatch.setattr(aiohttp.TCPConnector, "connect", slowly)
    async with upstreams.running(upstreams.llama) as fake:
        here = lane(upstream=upstream_at(fake.url))
        await edge.publish(here)
        request = asyncio.create_task(edge.chat(owner=MEMBER))
        await connecting.wait()
        assert edge.in_flight == 1  # counted before it connects
        slot = grant(OWNER, time.time() - 0.01, 1e11)
        await edge.publish(lane(upstream=here.upstream, grants=(slot,)))
        go_on.set()
        assert (await request).json()["error"]["code"] == "gpu_reserved"
        assert fake.seen == []
        assert edge.in_flight == 0


async def _floods(
    seen: upstreams.Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Writes as fast as it is read, and counts."""
    writer.write(upstreams.STREAM_HEAD)
    while True:
        writer.write(upstreams.chunk(b"data: " + b"x" * 10_000 + b"\n\n"))
        await writer.drain()
        seen.headers.append(("written", ""))


async def test_a_client_that_does_not_read_holds_the_server_back_and_no_drain_up(
    edge: Running,
) -> None:
    async with upstreams.running(_floods) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        port = int(edge.url.rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
        head = f"POST /v1/completions HTTP/1.1\r\nhost: x\r\nx-api-key: {key_of(OWNER)}\r\n"
        writer.write(head.encode() + b"content-length: 2\r\n\r\n{}")
        await until(lambda: fake.seen and _is_held_back(fake.seen[0]))
        await edge.publish(lane(upstream=None, phase="stopped", target=None))
        await until(lambda: fake.open_connections == 0)
        assert edge.in_flight == 0
        writer.close()


async def test_a_client_that_never_reads_gives_up_the_servers_slot_in_the_end(
    valkey_server: ValkeyServer,
) -> None:
    async with (
        edge_at(valkey_server.url, stalled_seconds=0.2) as edge,
        upstreams.running(_floods) as fake,
    ):
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        port = int(edge.url.rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
        head = f"POST /v1/completions HTTP/1.1\r\nhost: x\r\nx-api-key: {key_of(OWNER)}\r\n"
        writer.write(head.encode() + b"content-length: 2\r\n\r\n{}")
        await until(lambda: fake.seen and fake.open_connections == 1)
        await until(lambda: fake.open_connections == 0)
        assert edge.in_flight == 0
        writer.close()


_LENGTHS: dict[int, list[int]] = {}


def _is_held_back(seen: upstreams.Seen) -> bool:
    """Whether nothing has been written between fifty looks."""
    lengths = _LENGTHS.setdefault(id(seen), [])
    lengths.append(len(seen.headers))
    return len(lengths) > 50 and lengths[-1] == lengths[-50]


async def test_a_name_that_is_no_text_is_a_400_or_404_and_never_a_500(edge: Running) -> None:
    await edge.publish(lane())
    for body in (rb'{"model": "\ud800"}', rb'{"model": "\u0000"}', '{"model": "é\u2028"}'.encode()):
        answer = await edge.client.post("/v1/completions", content=body, headers=bearer(OWNER))
        assert answer.status_code in {400, 404}
