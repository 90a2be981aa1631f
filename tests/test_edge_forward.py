"""The edge over real sockets: forwarding, streaming, and what model servers get wrong."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import (
    MEMBER,
    OWNER,
    SERVER_KEY,
    Running,
    bearer,
    edge_at,
    grant,
    lane,
    until,
)
from tests.edge_harness import upstream as upstream_at

pytestmark = pytest.mark.valkey


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url, connect_seconds=0.5) as running:
        yield running
        await until(lambda: running.in_flight == 0)


async def _serve(edge: Running, fake: upstreams.FakeServer, **fields: Any) -> None:
    await edge.publish(lane(upstream=upstream_at(fake.url), **fields))


async def test_a_chat_reaches_the_model_server_and_its_answer_comes_back(edge: Running) -> None:
    async with upstreams.running(upstreams.llama) as fake:
        await _serve(edge, fake)
        answer = await edge.chat(model="qwen")
    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"] == "Hello there"
    assert answer.headers["x-slotserve-lane"] == "main"
    assert answer.headers["x-slotserve-preset"] == "qwen"
    assert answer.headers["x-accel-buffering"] == "no"


async def test_credentials_and_cookies_stay_here_and_the_servers_key_is_added(
    edge: Running,
) -> None:
    secret = bearer(OWNER) | {"cookie": "session=1", "x-api-key": "ss_other", "x-mine": "kept"}
    async with upstreams.running(upstreams.llama) as fake:
        await _serve(edge, fake)
        await edge.client.post("/v1/completions?a=%2F", json={"prompt": "Hi"}, headers=secret)
    seen = fake.seen[0]
    assert seen.path == "/v1/completions?a=%2F"
    assert [value for name, value in seen.headers if name == "authorization"] == [
        f"Bearer {SERVER_KEY}"
    ]
    assert seen.header("cookie") is seen.header("x-api-key") is None
    assert seen.header("x-mine") == "kept"
    assert seen.body == b'{"prompt":"Hi"}'


async def test_an_answer_of_the_fallback_says_so(edge: Running) -> None:
    async with upstreams.running(upstreams.llama) as fake:
        server = upstream_at(fake.url, preset="smol")
        here: dict[str, Any] = {"upstream": server, "target": "smol"}
        mine = grant(OWNER, time.time() - 60, time.time() + 60)
        await edge.publish(lane(**here, is_fallback=True, grants=(mine,)))
        answer = await edge.chat(model="qwen")
        assert answer.headers["x-slotserve-fallback"] == "smol"
        await edge.publish(lane(**here))
        assert "x-slotserve-fallback" not in (await edge.chat()).headers


async def test_a_busy_model_servers_503_says_when_to_come_again(edge: Running) -> None:
    async with upstreams.running(upstreams.is_busy) as fake:
        await _serve(edge, fake)
        answer = await edge.chat()
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


async def test_a_server_slow_to_go_on_is_no_client_that_stalls(edge: Running) -> None:
    async with upstreams.running(upstreams.first_event_then_hangs) as fake:
        await _serve(edge, fake)
        async with edge.client.stream(
            "POST", "/v1/chat/completions", json={"stream": True}, headers=bearer(OWNER)
        ) as answer:
            await anext(answer.aiter_text())
            (exchange,) = edge.edge.gate._inside["main"]
            assert exchange.writing_since is None


async def test_of_servers_that_left_the_table_nothing_is_kept(edge: Running) -> None:
    async with upstreams.running(upstreams.llama) as fake:
        for generation in (1, 2, 3):
            await edge.publish(lane(upstream=upstream_at(fake.url, generation=generation)))
            assert (await edge.chat()).status_code == 200
        await until(lambda: len(edge.edge.pool._servers) == 1)
        await until(lambda: fake.open_connections == 1)


async def test_cors_and_cookies_of_the_model_server_do_not_pass(edge: Running) -> None:
    async with upstreams.running(upstreams.llama) as fake:
        await _serve(edge, fake)
        answer = await edge.chat(stream=True)
    assert "access-control-allow-origin" not in answer.headers
    assert "set-cookie" not in answer.headers
    assert answer.text.endswith("data: [DONE]\n\n")


async def test_the_first_event_is_passed_on_at_once(edge: Running) -> None:
    async with upstreams.running(upstreams.first_event_then_hangs) as fake:
        await _serve(edge, fake)
        async with edge.client.stream(
            "POST", "/v1/chat/completions", json={"stream": True}, headers=bearer(OWNER)
        ) as answer:
            first = await anext(answer.aiter_text())
        assert json.loads(first.removeprefix("data: "))["choices"][0]["delta"]["content"] == "Hello"
        await until(lambda: fake.open_connections == 0)


@pytest.mark.parametrize(
    "behaviour",
    [
        upstreams.dies_before_headers,
        upstreams.dies_in_headers,
        upstreams.answers_garbage,
        upstreams.refuses_our_key,
    ],
)
async def test_a_server_that_breaks_before_its_answer_is_a_502(
    edge: Running, behaviour: upstreams.Behaviour
) -> None:
    async with upstreams.running(behaviour) as fake:
        await _serve(edge, fake)
        answer = await edge.chat()
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_failed")
        assert "gateway" in answer.json()["error"]["message"]
        assert len(fake.seen) == 1  # never tried again once a byte was sent
        await until(lambda: fake.open_connections == 0)


async def test_a_server_that_dies_mid_stream_ends_in_an_error_event(edge: Running) -> None:
    async with upstreams.running(upstreams.dies_mid_stream) as fake:
        await _serve(edge, fake)
        answer = await edge.chat(stream=True)
    assert answer.status_code == 200
    last = answer.text.strip().split("\n\n")[-1]
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "upstream_failed"


async def test_the_error_event_of_an_anthropic_stream_has_its_shape(edge: Running) -> None:
    async with upstreams.running(upstreams.dies_mid_stream) as fake:
        await _serve(edge, fake)
        answer = await edge.client.post("/v1/messages", json={}, headers=bearer(OWNER))
    name, data = answer.text.strip().split("\n\n")[-1].split("\n")
    assert name == "event: error"
    shape = json.loads(data.removeprefix("data: "))
    assert (shape["type"], shape["error"]["type"]) == ("error", "api_error")


async def test_half_an_answer_is_never_passed_off_as_a_whole_one(edge: Running) -> None:
    async with upstreams.running(upstreams.answers_short) as fake:
        await _serve(edge, fake)
        with pytest.raises(httpx.RemoteProtocolError):
            await edge.chat()


@pytest.mark.parametrize(
    ("behaviour", "status"), [(upstreams.hangs, 502), (upstreams.first_event_then_hangs, 200)]
)
async def test_a_server_that_says_nothing_for_too_long_is_given_up(
    valkey_server: ValkeyServer, behaviour: upstreams.Behaviour, status: int
) -> None:
    async with (
        edge_at(valkey_server.url, answer_seconds=0.2) as edge,
        upstreams.running(behaviour) as fake,
    ):
        await _serve(edge, fake)
        answer = await edge.chat(stream=True)
        assert answer.status_code == status
        assert '"code":"upstream_failed"' in answer.text
        await until(lambda: fake.open_connections == 0)


async def test_a_server_that_is_not_there_is_a_502(edge: Running) -> None:
    await edge.publish(lane(upstream=upstream_at("http://127.0.0.1:9")))
    answer = await edge.chat()
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_failed")


async def test_a_server_that_moved_while_nobody_was_told_is_found_again(edge: Running) -> None:
    async with upstreams.running(upstreams.llama) as fake:
        await edge.publish(lane(upstream=upstream_at("http://127.0.0.1:9")))
        moved = lane(generation=2, upstream=upstream_at(fake.url, generation=2))
        await edge.publisher.publish(moved, is_quiet=True)
        answer = await edge.chat()
    assert answer.status_code == 200
    assert edge.version == 2


async def test_a_kept_connection_that_the_server_closed_is_not_used_again(edge: Running) -> None:
    async with upstreams.running(upstreams.llama) as fake:
        fake.keeps_alive_for = 5
        await _serve(edge, fake)
        answers = [await edge.chat() for _ in range(23)]
    assert {answer.status_code for answer in answers} == {200}
    assert fake.accepted == 5


@pytest.mark.parametrize(
    "behaviour", [upstreams.hangs, upstreams.first_event_then_hangs, upstreams.streams_for_ever]
)
async def test_a_client_that_leaves_closes_the_servers_connection_at_once(
    edge: Running, behaviour: upstreams.Behaviour
) -> None:
    async with upstreams.running(behaviour) as fake:
        await _serve(edge, fake)
        request = asyncio.create_task(edge.chat(stream=True))
        await until(lambda: fake.open_connections == 1 and fake.seen)
        assert edge.in_flight == 1
        request.cancel()
        await until(lambda: fake.open_connections == 0)
        await until(lambda: edge.in_flight == 0)
        await asyncio.gather(request, return_exceptions=True)


async def test_a_large_body_arrives_whole(edge: Running) -> None:
    text = "x" * 3_000_000
    async with upstreams.running(upstreams.llama) as fake:
        await _serve(edge, fake)
        answer = await edge.chat(padding=text)
    assert answer.status_code == 200
    assert json.loads(fake.seen[0].body)["padding"] == text


async def test_a_body_that_has_gone_up_is_let_go_while_its_answer_lasts(edge: Running) -> None:
    body = {"stream": True, "padding": "x" * 1_000_000}
    async with upstreams.running(upstreams.first_event_then_hangs) as fake:
        await _serve(edge, fake)
        async with edge.client.stream(
            "POST", "/v1/chat/completions", json=body, headers=bearer(OWNER)
        ) as answer:
            events = answer.aiter_text()
            await anext(events)
            await until(lambda: edge.edge.parts.spools.used == 0)
            assert edge.in_flight == 1


async def test_embeddings_and_messages_and_lane_paths_pass(edge: Running) -> None:
    async with upstreams.running(upstreams.llama) as fake:
        await _serve(edge, fake)
        for path in ("/v1/embeddings", "/v1/messages", "/lanes/main/v1/chat/completions"):
            answer = await edge.client.post(path, json={"input": "Hi"}, headers=bearer(MEMBER))
            assert answer.status_code == 200, path
    assert [seen.path for seen in fake.seen] == [
        "/v1/embeddings",
        "/v1/messages",
        "/v1/chat/completions",
    ]


async def test_a_server_slow_to_answer_costs_no_other_request_anything(edge: Running) -> None:
    async with (
        upstreams.running(upstreams.hangs) as slow,
        upstreams.running(upstreams.llama) as fast,
    ):
        await edge.publish(
            lane("slow", upstream=upstream_at(slow.url, preset="smol")),
            lane("fast", upstream=upstream_at(fast.url)),
        )
        waiting = [asyncio.create_task(edge.chat(model="smol")) for _ in range(20)]
        await until(lambda: edge.in_flight == 20)
        assert (await edge.chat(model="qwen")).status_code == 200
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await until(lambda: edge.in_flight == 0)
