"""The examples for nginx and Caddy, before a real edge: streams, WebSockets, bodies, who leaves."""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.asyncio.client import connect

from slotserve.stack.parts import ROOT
from tests import proxies, upstreams, ws_upstream
from tests.edge_harness import OWNER, Running, bearer, http_client, lane, until
from tests.edge_harness import upstream as upstream_at
from tests.proxies import NotInstalledError

pytest_plugins = ["tests.edge_fixtures"]
pytestmark = [pytest.mark.valkey, pytest.mark.process]
CHAT = "/v1/chat/completions"
STREAM = {"messages": [{"role": "user", "content": "Hi"}], "stream": True}
MB = 2**20


@dataclass
class Before:
    """A proxy before an edge."""

    url: str  # https://api.gpu.example.org:PORT
    edge: Running

    def client(self) -> httpx.AsyncClient:
        """Asks the proxy on loopback by the API's name."""
        place = urlsplit(self.url)
        headers = bearer(OWNER) | {"host": str(place.netloc)}
        url = f"{place.scheme}://127.0.0.1:{place.port}"
        return http_client(base_url=url, timeout=60, headers=headers)


@pytest.fixture(params=["nginx", "caddy"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def proxy(name: str, edge: Running, tmp_path: Path) -> Iterator[Before]:
    yield from behind(name, edge, tmp_path)


def behind(name: str, edge: Running, folder: Path, **changes: str) -> Iterator[Before]:
    """The edge behind this proxy; skipped loudly where it is not installed."""
    port = urlsplit(edge.url).port
    try:
        with proxies.running(name, folder, gateway=port or 0, web=9, **changes) as url:
            yield Before(url, edge)
    except NotInstalledError as error:
        pytest.skip(f"NOT TESTED HERE: {error}")


async def events_when_asked(
    seen: upstreams.Seen, _: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """An event, and the next one only when the test has seen this one."""
    writer.write(upstreams.STREAM_HEAD)
    for word in ("one", "two", "three"):
        writer.write(upstreams.chunk(upstreams.event(word)))
        await writer.drain()
        await seen.release.wait()
        seen.release.clear()
    writer.write(upstreams.chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
    await writer.drain()


@asynccontextmanager
async def served(
    proxy: Before, behaviour: upstreams.Behaviour
) -> AsyncIterator[upstreams.FakeServer]:
    """A model server with this behaviour behind the edge's one lane."""
    async with upstreams.running(behaviour) as server:
        await proxy.edge.publish(lane(upstream=upstream_at(server.url)))
        yield server


async def test_events_come_one_by_one(proxy: Before) -> None:
    async with (
        asyncio.timeout(60),
        served(proxy, events_when_asked) as server,
        proxy.client() as client,
        client.stream("POST", CHAT, json=STREAM) as answer,
    ):
        words = []
        async for line in answer.aiter_lines():
            if line.startswith("data: {"):
                words.append(json.loads(line[6:])["choices"][0]["delta"]["content"])
                server.release.set()  # a proxy that waited for more would wait for ever
    assert words == ["one", "two", "three"]


async def test_a_client_that_leaves_ends_the_model_server_s_work(proxy: Before) -> None:
    async with asyncio.timeout(60), served(proxy, upstreams.streams_for_ever) as server:
        async with proxy.client() as client, client.stream("POST", CHAT, json=STREAM) as answer:
            await anext(answer.aiter_lines())
        await until(lambda: server.closed_by_peer == 1)


async def test_a_client_that_leaves_before_the_answer_ends_it_too(proxy: Before) -> None:
    async with (
        asyncio.timeout(60),
        served(proxy, upstreams.hangs) as server,
        proxy.client() as client,
    ):
        asking = asyncio.create_task(client.post(CHAT, json=STREAM))
        await until(lambda: server.seen)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await until(lambda: server.closed_by_peer == 1)


async def status_of_announced(proxy: Before, length: int) -> int:
    """What a client is told that sends a body of this length for as long as it is let."""
    place = urlsplit(proxy.url)
    context = ssl._create_unverified_context() if place.scheme == "https" else None
    reader, writer = await asyncio.open_connection("127.0.0.1", place.port, ssl=context)
    lines = [f"POST {CHAT} HTTP/1.1", f"Host: {place.netloc}", f"Content-Length: {length}"]
    lines += [f"{name}: {value}" for name, value in bearer(OWNER).items()]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    sending = asyncio.create_task(_send(writer, length))
    async with asyncio.timeout(60):
        first = await reader.readline()
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    writer.transport.abort()
    return int(first.split()[1])


async def _send(writer: asyncio.StreamWriter, length: int) -> None:
    for _ in range(length // MB):
        writer.write(bytes(MB))
        await writer.drain()


async def test_large_bodies_pass_and_too_large_ones_do_not(proxy: Before) -> None:
    async with served(proxy, upstreams.llama) as server, proxy.client() as client:
        body = {"messages": [{"role": "user", "content": "x" * 20 * MB}]}
        answer = await client.post(CHAT, json=body)
        assert answer.status_code == 200
        assert len(server.seen[0].body) > 20 * MB
    assert await status_of_announced(proxy, 65 * MB) == 413


async def test_websockets_pass_both_ways(proxy: Before) -> None:
    place = urlsplit(proxy.url)
    context = ssl._create_unverified_context() if place.scheme == "https" else None
    async with asyncio.timeout(60), ws_upstream.running(ws_upstream.echoes) as fake:
        await proxy.edge.publish(lane(upstream=upstream_at(fake.url)))
        url = f"{place.scheme.replace('http', 'ws')}://{place.netloc}/v1/realtime?model=qwen"
        opening = connect(
            url, host="127.0.0.1", additional_headers=bearer(OWNER), ssl=context, proxy=None
        )
        async with opening as socket:
            for word in ("one", "two"):
                await socket.send(word)
                assert await socket.recv() == word


@pytest.mark.parametrize("path", ["/metrics", "/ready"])
async def test_what_names_lanes_is_for_operators_alone(proxy: Before, path: str) -> None:
    async with proxy.client() as client:
        assert (await client.get(path)).status_code == 404
        assert (await client.get("/health")).status_code == 200


async def test_refusals_are_the_gateway_s_own(proxy: Before) -> None:
    async with proxy.client() as client:
        answer = await client.post(CHAT, json=STREAM, headers={"authorization": "Bearer no"})
        assert answer.json()["error"]["code"] in {"invalid_api_key", "gateway_starting"}
        assert (await client.get("/metrics")).status_code == 404


async def test_a_model_that_thinks_longer_than_the_limit_is_cut(
    name: str, edge: Running, tmp_path: Path
) -> None:
    """So these directives are what keeps long answers, which the next test holds to an hour."""
    old = {"nginx": "proxy_read_timeout 3600s", "caddy": "response_header_timeout 3600s"}[name]
    for proxy in behind(name, edge, tmp_path, **{old: old.replace("3600s", "1s")}):
        async with served(proxy, upstreams.hangs), proxy.client() as client:
            answer = await client.post(CHAT, json=STREAM | {"stream": False})
            assert answer.status_code in {502, 504}


SECRET_PATHS = (
    *("/once/S3CRET/", "/feeds/S3CRET/bookings.ics", "/invitation/S3CRET/"),
    *("/accounts/password/reset/key/1-S3CRET/", "/accounts/confirm-email/S3CRET/"),
)


def test_no_log_has_a_path_that_opens_something(name: str, tmp_path: Path) -> None:
    """Neither where the pages answer nor, as here, where they do not."""
    try:
        with proxies.running(name, tmp_path, gateway=9, web=9) as api:
            place = urlsplit(api)
            host = f"gpu.example.org:{place.port}"
            here = f"{place.scheme}://127.0.0.1:{place.port}"
            with httpx.Client(
                base_url=here, headers={"host": host}, verify=False, timeout=60
            ) as client:
                for path in (*SECRET_PATHS, "/bookings/"):
                    assert client.get(path, headers={"referer": "https://x/"}).status_code == 502
    except NotInstalledError as error:
        pytest.skip(f"NOT TESTED HERE: {error}")
    logs = [each for each in tmp_path.iterdir() if each.name in {"access", "log", "said"}]
    said = "".join(each.read_text() for each in logs)
    assert "/bookings/" in said
    assert "S3CRET" not in said


@pytest.mark.parametrize(
    ("file", "directives"),
    [
        ("nginx.conf", {"proxy_read_timeout": 3600, "send_timeout": 300}),
        ("Caddyfile", {"read_timeout": 3600, "response_header_timeout": 3600}),
    ],
)
def test_no_answer_is_cut_before_the_gateway_s_own_limit(
    file: str, directives: dict[str, int]
) -> None:
    text = (ROOT / "docs" / "proxies" / file).read_text()
    for directive, seconds in directives.items():
        assert re.search(rf"^\s*{directive} {seconds}s", text, re.MULTILINE), directive
    holds_back = r"^\s*(encode|flush_interval|gzip|proxy_ignore_client_abort)"
    assert not re.search(holds_back, text, re.MULTILINE)
