"""WebSockets through the edge, over real sockets on both sides."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from tests import ws_upstream
from tests.conftest import ValkeyServer
from tests.edge_harness import (
    MEMBER,
    OWNER,
    SERVER_KEY,
    STRANGER,
    Running,
    bearer,
    edge_at,
    grant,
    key_of,
    lane,
    until,
)
from tests.edge_harness import upstream as upstream_at
from tests.ws_client import closed, open_socket, refused, serve
from tests.ws_upstream import FakeSocket

pytestmark = pytest.mark.valkey


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url, drain_seconds=0.3, connect_seconds=0.5) as running:
        yield running
        await until(lambda: running.in_flight == 0)


@pytest.fixture
async def echo(edge: Running) -> AsyncIterator[FakeSocket]:
    async with ws_upstream.running(ws_upstream.echoes) as fake:
        await serve(edge, fake)
        yield fake


@pytest.mark.parametrize(
    "message",
    ["Hi", "", "é\u2028\0", b"\x00\xff", b"", "x" * 3_000_000],
    ids=["text", "empty text", "other letters", "bytes", "no bytes", "large"],
)
async def test_messages_come_back_as_they_went(
    edge: Running, echo: FakeSocket, message: str | bytes
) -> None:
    async with open_socket(edge) as client:
        await client.send(message)
        assert await client.recv() == message
        assert edge.in_flight == 1
    assert client.response is not None
    assert client.response.headers["x-slotserve-lane"] == "main"


async def test_a_message_in_pieces_arrives_whole(edge: Running, echo: FakeSocket) -> None:
    async with open_socket(edge) as client:
        await client.send(iter(["a", "b", "c"]))
        assert await client.recv() == "abc"


async def test_the_model_server_gets_its_key_and_nothing_of_the_callers(
    edge: Running, echo: FakeSocket
) -> None:
    secret = {"cookie": "a=b", "x-api-key": "ss_other", "openai-beta": "realtime=v1"}
    path = "/lanes/main/v1/realtime?model=qwen&voice=a%20b"
    async with open_socket(edge, path, headers=secret, origin="https://page.example"):
        pass
    (request,) = echo.requests
    assert request.path == "/v1/realtime?model=qwen&voice=a%20b"
    assert request.headers.get_all("authorization") == [f"Bearer {SERVER_KEY}"]
    assert request.headers["openai-beta"] == "realtime=v1"
    kept = {name.lower() for name, _ in request.headers.raw_items()}
    assert not kept & {"cookie", "x-api-key", "origin", "sec-websocket-extensions"}


async def test_a_key_may_be_shown_as_basic_password(edge: Running, echo: FakeSocket) -> None:
    shown = base64.b64encode(f"me:{key_of(OWNER)}".encode()).decode()
    async with open_socket(edge, owner=None, headers={"authorization": f"Basic {shown}"}) as client:
        await client.send("Hi")
        assert await client.recv() == "Hi"


async def test_a_browser_shows_its_key_as_a_subprotocol_that_goes_no_further(edge: Running) -> None:
    key = f"openai-insecure-api-key.{key_of(OWNER)}"
    async with ws_upstream.running(ws_upstream.echoes, protocols=("realtime",)) as fake:
        await serve(edge, fake)
        async with open_socket(edge, owner=None, protocols=("realtime", key, "beta")) as client:
            assert client.subprotocol == "realtime"
    assert fake.requests[0].headers.get_all("sec-websocket-protocol") == ["realtime,beta"]


async def test_no_subprotocol_is_chosen_where_the_server_chooses_none(
    edge: Running, echo: FakeSocket
) -> None:
    async with open_socket(edge, protocols=("realtime",)) as client:
        assert client.subprotocol is None


@pytest.mark.parametrize(
    ("path", "owner", "refusal"),
    [
        ("/v1/realtime", None, (401, "invalid_api_key")),
        ("/v1/realtime", STRANGER, (401, "invalid_api_key")),
        (f"/v1/realtime?api_key={key_of(OWNER)}", None, (401, "invalid_api_key")),
        ("/lanes/other/v1/realtime", OWNER, (404, "lane_not_found")),
        ("/v1/realtime?model=nobody", OWNER, (404, "model_not_found")),
        ("/v1/realtime?model=smol", OWNER, (409, "model_not_loaded")),
        ("/v1/realtime?model=qwen&model=smol", OWNER, (400, "invalid_request_error")),
    ],
)
async def test_a_refusal_is_an_http_answer_and_reaches_no_model(
    edge: Running, echo: FakeSocket, path: str, owner: int | None, refusal: tuple[int, str]
) -> None:
    assert await refused(edge, path, owner=owner) == refusal
    assert echo.requests == []
    assert edge.in_flight == 0


async def test_of_several_reasons_the_first_in_the_order_is_told(
    edge: Running, echo: FakeSocket
) -> None:
    slot = grant(OWNER, time.time() - 1, time.time() + 60)
    await serve(edge, echo, grants=(slot,))
    two = "/v1/realtime?model=nobody&model=qwen"
    assert await refused(edge, two, owner=None) == (401, "invalid_api_key")
    assert await refused(edge, two) == (400, "invalid_request_error")
    assert await refused(edge, "/v1/realtime?model=nobody", owner=MEMBER) == (403, "gpu_reserved")
    assert await refused(edge, "/v1/realtime?model=nobody") == (404, "model_not_found")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"phase": "starting", "upstream": None}, "model_loading"),
        ({"draining": True, "target": "smol"}, "model_switching"),
        ({"phase": "stopped", "upstream": None, "target": None}, "no_model_loaded"),
    ],
)
async def test_a_lane_that_serves_nobody_says_when_to_come_again(
    edge: Running, fields: dict[str, Any], code: str
) -> None:
    await edge.publish(lane(**fields))
    with pytest.raises(InvalidStatus) as caught:
        await open_socket(edge)
    answer = caught.value.response
    assert (answer.status_code, int(answer.headers["retry-after"]) > 0) == (503, True)
    assert code.encode() in (answer.body or b"")


async def test_without_a_table_the_gateway_is_starting(edge: Running) -> None:
    assert await refused(edge) == (503, "gateway_starting")


async def test_what_is_no_handshake_is_told_what_the_path_takes(edge: Running) -> None:
    answer = await edge.client.get("/v1/realtime", headers=bearer(OWNER))
    assert (answer.status_code, answer.json()["error"]["code"]) == (426, "upgrade_required")
    assert answer.headers["upgrade"] == "websocket"
    assert (await edge.client.post("/v1/realtime", headers=bearer(OWNER))).status_code == 405


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models", "/nothing", "/health"])
async def test_no_other_path_becomes_a_websocket(edge: Running, path: str) -> None:
    await edge.publish(lane())
    with pytest.raises(InvalidStatus) as caught:
        await open_socket(edge, path)
    assert caught.value.response.status_code in {200, 404, 405}


@pytest.mark.parametrize(
    ("status", "told", "code"),
    [
        (404, 404, "upstream_refused"),
        (503, 503, "upstream_refused"),
        (401, 502, "upstream_failed"),
        (302, 502, "upstream_failed"),
    ],
)
async def test_a_model_server_that_declines_is_heard_before_the_handshake(
    edge: Running, echo: FakeSocket, status: int, told: int, code: str
) -> None:
    echo.declines_with = status
    assert await refused(edge) == (told, code)
    assert len(echo.requests) == 1


async def test_a_model_server_that_is_not_there_is_a_502(edge: Running) -> None:
    await edge.publish(lane(upstream=upstream_at("http://127.0.0.1:9")))
    assert await refused(edge) == (502, "upstream_failed")


async def test_a_server_that_moved_while_nobody_was_told_is_found_again(
    edge: Running, echo: FakeSocket
) -> None:
    await edge.publish(lane(upstream=upstream_at("http://127.0.0.1:9")))
    moved = lane(generation=2, upstream=upstream_at(echo.url, generation=2))
    await edge.publisher.publish(moved, is_quiet=True)
    async with open_socket(edge) as client:
        await client.send("Hi")
        assert await client.recv() == "Hi"


async def test_what_each_side_closes_with_the_other_hears(edge: Running, echo: FakeSocket) -> None:
    async with open_socket(edge) as client:
        await client.send("Hi")
        await client.recv()
        await client.close(4000, "done")
    await until(lambda: echo.ended == [4000])
    async with ws_upstream.running(ws_upstream.leaves) as fake:
        await serve(edge, fake)
        async with open_socket(edge) as client:
            assert await closed(client) == (4321, "had enough")


async def test_a_model_server_that_is_cut_off_is_a_1011(edge: Running) -> None:
    async with ws_upstream.running(ws_upstream.dies) as fake:
        await serve(edge, fake)
        async with open_socket(edge) as client:
            code, reason = await closed(client)
    assert (code, reason.partition(":")[0]) == (1011, "upstream_failed")


async def test_a_client_that_is_cut_off_ends_the_servers_side_at_once(edge: Running) -> None:
    async with ws_upstream.running(ws_upstream.hears) as fake:
        await serve(edge, fake)
        client = await open_socket(edge)
        await until(lambda: fake.open)
        client.transport.abort()
        await until(lambda: not fake.open)
        await until(lambda: edge.in_flight == 0)


async def test_a_client_that_leaves_before_the_answer_leaves_nothing(edge: Running) -> None:
    async def accepts(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10_000)
        heard.set()
        assert await reader.read() == b""
        writer.close()

    heard = asyncio.Event()
    server = await asyncio.start_server(accepts, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        await edge.publish(lane(upstream=upstream_at(f"http://127.0.0.1:{port}")))
        opening = asyncio.ensure_future(open_socket(edge).__aenter__())
        await heard.wait()
        assert edge.in_flight == 1
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        await until(lambda: edge.in_flight == 0)
