"""Streams that wait: what they are told, and what follows it."""

import asyncio
import json
import time
from collections.abc import AsyncIterator

import anthropic
import openai
import pytest

from gateway.edge import telling
from tests import upstream_shapes as shapes
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import MEMBER, Running, bearer, edge_at, key_of, until
from tests.waiting_cast import chat, events, gone, hurry, loading, ready, waiting

pytestmark = pytest.mark.valkey
ASKS = {"prefer": "wait=30"}


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url) as running:
        yield running
        await until(lambda: running.in_flight == 0)
        assert running.edge.gate.waiting == {}


@pytest.fixture
async def fake() -> AsyncIterator[upstreams.FakeServer]:
    async with upstreams.running(upstreams.llama) as server:
        yield server


@pytest.fixture
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@pytest.mark.usefixtures("briefly")
async def test_a_stream_that_waits_hears_its_place_and_then_the_servers_own_words(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    await edge.publish(loading(eta=time.time() + 35))
    request = chat(edge, "wait=30", stream=True)
    await asyncio.wait({request}, timeout=0.3)
    await edge.publish(ready(fake))
    answer = await request
    said, rest = events(answer.text)[0], events(answer.text)[-5:]
    assert said in {f": slotserve queue position=1 estimate={n}s" for n in (34, 35)}
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
    plain = await chat(edge, stream=True)
    assert [each.partition('"created"')[0] for each in rest] == [
        each.partition('"created"')[0] for each in events(plain.text)
    ]


@pytest.mark.usefixtures("briefly")
@pytest.mark.parametrize(("heartbeat", "least", "most"), [(0.1, 3, 12), (60.0, 1, 1)])
async def test_what_has_not_changed_is_said_again_only_to_show_life(
    edge: Running, monkeypatch: pytest.MonkeyPatch, heartbeat: float, least: int, most: int
) -> None:
    monkeypatch.setattr(telling, "HEARTBEAT_SECONDS", heartbeat)
    await edge.publish(loading())
    answer = await chat(edge, "wait=1", stream=True)
    *comments, last = events(answer.text)
    assert set(comments) == {": slotserve queue position=1"}
    assert least <= len(comments) <= most
    assert '"model_loading"' in last


@pytest.mark.usefixtures("briefly")
async def test_who_is_behind_hears_of_each_step_forward(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    await edge.publish(loading())
    first = chat(edge, "wait=30")
    await waiting(edge, 1)
    second = chat(edge, "wait=30", stream=True)
    await waiting(edge, 2)
    await asyncio.wait({second}, timeout=0.3)
    await gone(first)
    await asyncio.wait({second}, timeout=0.2)
    await edge.publish(ready(fake))
    said = [each for each in events((await second).text) if each.startswith(":")]
    assert said == [f": slotserve queue position={place}" for place in (2, 1)]


@pytest.mark.usefixtures("briefly")
async def test_a_body_that_asks_for_no_stream_gets_a_true_status_after_its_wait(
    edge: Running,
) -> None:
    await edge.publish(loading())
    request = chat(edge, "wait=1")
    answer = await request
    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/json")


async def test_a_short_wait_ends_in_a_true_status(edge: Running) -> None:
    await edge.publish(loading())
    assert (await chat(edge, "wait=1", stream=True)).status_code == 503


@pytest.mark.usefixtures("briefly")
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
async def test_a_servers_own_refusal_is_an_event_when_200_is_out(edge: Running, path: str) -> None:
    async with upstreams.running(_refuses) as fake:
        await edge.publish(loading())
        body = {"messages": [], "stream": True}
        headers = bearer(MEMBER) | {"prefer": "wait=30"}
        request = asyncio.create_task(edge.client.post(path, json=body, headers=headers))
        await asyncio.wait({request}, timeout=0.3)
        await edge.publish(ready(fake))
        answer = await request
    last = events(answer.text)[-1]
    error = json.loads(last[last.index("{") :])["error"]
    assert (answer.status_code, error["code"]) == (200, "upstream_refused")
    assert "exceeds the available context" in error["message"]
    assert last.startswith("event: error" if path == "/v1/messages" else "data: {")


async def _refuses(
    seen: upstreams.Seen, _: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    error = {"code": 400, "message": "request exceeds the available context", "type": "x"}
    body = json.dumps({"error": error}).encode()
    writer.write(upstreams.response(body, status="400 Bad Request"))
    await writer.drain()


@pytest.mark.usefixtures("briefly")
async def test_openais_client_passes_over_what_a_stream_is_told(edge: Running) -> None:
    async with upstreams.running(shapes.every_route) as fake:
        await edge.publish(loading())
        key, url = key_of(MEMBER), f"{edge.url}/v1"
        async with openai.AsyncOpenAI(api_key=key, base_url=url, max_retries=0) as client:
            made = client.chat.completions.create(
                model="qwen", messages=[], stream=True, extra_headers=ASKS
            )
            opening = asyncio.ensure_future(made)
            await asyncio.wait({opening}, timeout=5)  # 200 is out while the model loads
            await waiting(edge, 1)
            await edge.publish(ready(fake))
            chunks = [chunk async for chunk in await opening]
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)


@pytest.mark.usefixtures("briefly")
async def test_anthropics_client_passes_over_what_a_stream_is_told(edge: Running) -> None:
    async with upstreams.running(shapes.every_route) as fake:
        await edge.publish(loading())
        key = key_of(MEMBER)
        async with anthropic.AsyncAnthropic(
            api_key=key, base_url=edge.url, max_retries=0
        ) as client:
            made = client.messages.create(
                model="qwen", messages=[], max_tokens=9, stream=True, extra_headers=ASKS
            )
            opening = asyncio.ensure_future(made)
            await asyncio.wait({opening}, timeout=5)
            await waiting(edge, 1)
            await edge.publish(ready(fake))
            kinds = [event.type async for event in await opening]
    assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
