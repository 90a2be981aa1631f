"""What the nearest peer tests or gets wrong of waiting, by the numbers of its list.

T: what it has a test for. W: what it was seen to get wrong.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from gateway.edge import telling
from gateway.edge.app import EdgeApp
from gateway.edge.exchange import Exchange
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import MEMBER, OWNER, Running, bearer, edge_at, key_of, lane, until
from tests.edge_harness import upstream as upstream_at
from tests.queue_world import World, turn
from tests.test_edge_cancel import SCOPE, Client
from tests.waiting_cast import chat as ask
from tests.waiting_cast import code, gone, hurry, loading, ready, waiting

pytestmark = pytest.mark.valkey


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url, queue_per_lane=6) as running:
        yield running
        await until(lambda: running.in_flight == 0)
        assert running.edge.gate.waiting == {}
        assert running.edge.slots._held == {}


@pytest.fixture
async def fake() -> AsyncIterator[upstreams.FakeServer]:
    async with upstreams.running(upstreams.answers_when_released) as server:
        yield server


@pytest.fixture
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


def chat(edge: Running, **fields: Any) -> "asyncio.Task[httpx.Response]":
    return ask(edge, "wait=30", **fields)


async def test_t7_all_who_wait_for_a_load_are_served(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    fake.release.set()
    await edge.publish(loading())
    requests = [chat(edge) for _ in range(3)]
    await waiting(edge, 3)
    await edge.publish(ready(fake))
    assert [each.status_code for each in await asyncio.gather(*requests)] == [200] * 3


async def test_t8_a_load_that_fails_refuses_all_who_wait(edge: Running) -> None:
    await edge.publish(loading())
    requests = [chat(edge) for _ in range(3)]
    await waiting(edge, 3)
    await edge.publish(lane(upstream=None, phase="failed", failure="out of memory"))
    answers = await asyncio.gather(*requests)
    assert [code(each) for each in answers] == [(503, "model_failed")] * 3


@pytest.mark.usefixtures("unswept")
async def test_t13_who_has_left_leaves_no_count(edge: Running, fake: upstreams.FakeServer) -> None:
    await edge.publish(ready(fake))
    requests = [chat(edge) for _ in range(3)]
    await waiting(edge, 2)
    await gone(requests[1])
    await waiting(edge, 1)
    fake.release.set()
    assert (await requests[0]).status_code == (await requests[2]).status_code == 200
    assert len(fake.seen) == 2


@pytest.mark.parametrize("turns", range(24))
async def test_t13_whoever_leaves_as_he_is_let_in_leaves_no_count(
    edge: Running, fake: upstreams.FakeServer, turns: int
) -> None:
    fake.release.set()
    await edge.publish(loading())
    client = Client()
    scope = SCOPE | {"headers": [*SCOPE["headers"], (b"prefer", b"wait=30")]}
    task = asyncio.create_task(EdgeApp(edge.edge)(client.of(scope), client.receive, client.send))
    await waiting(edge, 1)
    publishing = asyncio.create_task(edge.publish(ready(fake)))
    await until(lambda: edge.edge.gate.waiting == {})
    for _ in range(turns):
        await asyncio.sleep(0)
    client.leave()
    async with asyncio.timeout(30):
        await task
    await publishing


@pytest.mark.usefixtures("unswept")
async def test_t14_one_who_leaves_the_queue_takes_nobody_with_him(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    fake.release.set()
    await edge.publish(loading())
    first = chat(edge)
    await waiting(edge, 1)
    others = [chat(edge), chat(edge)]
    await waiting(edge, 3)
    await gone(first)
    await waiting(edge, 2)
    await edge.publish(ready(fake))
    assert [each.status_code for each in await asyncio.gather(*others)] == [200] * 2
    assert len(fake.seen) == 2


async def test_t15_the_limit_counts_who_waits_and_is_freed_by_leaving_and_finishing(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    await edge.publish(ready(fake))
    requests = [chat(edge) for _ in range(4)]
    await waiting(edge, 3)
    assert code(await chat(edge)) == (429, "lane_busy")
    await gone(requests.pop())
    await waiting(edge, 2)
    requests.append(chat(edge))
    await waiting(edge, 3)
    assert code(await chat(edge)) == (429, "lane_busy")
    fake.release.set()
    await asyncio.gather(*requests)
    assert (await chat(edge)).status_code == 200


@pytest.mark.usefixtures("briefly")
async def test_t16_a_stream_over_the_limit_gets_json_and_when_to_ask_again(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    await edge.publish(loading())
    requests = [chat(edge, stream=True) for _ in range(3)]
    await waiting(edge, 3)
    refused = await chat(edge, stream=True)
    assert code(refused) == (429, "lane_busy")
    assert refused.headers["content-type"] == "application/json"
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    fake.release.set()
    await edge.publish(ready(fake))
    await asyncio.gather(*requests)


@pytest.mark.parametrize("is_first", ["the client leaves", "a slot is free"])
async def test_t21_a_client_who_has_left_wins_over_his_admission(
    edge: Running, fake: upstreams.FakeServer, is_first: str
) -> None:
    fake.release.set()
    await edge.publish(loading())
    client = Client()
    scope = SCOPE | {"headers": [*SCOPE["headers"], (b"prefer", b"wait=30")]}
    task = asyncio.create_task(EdgeApp(edge.edge)(client.of(scope), client.receive, client.send))
    await waiting(edge, 1)
    found = edge.edge.holder.table
    assert found is not None
    loaded = replace(found, lanes={"main": ready(fake)})
    edge.edge.gate.table = lambda: loaded
    if is_first == "the client leaves":
        client.leave()
        edge.edge.gate.review_all()
    else:
        edge.edge.gate.review_all()
        client.leave()
    async with asyncio.timeout(30):
        await task
    assert fake.seen == []
    assert client.sent == []


async def test_t22_leaving_twice_is_a_loud_failure() -> None:
    world = World()
    exchange = world.gate.enter(turn())
    assert isinstance(exchange, Exchange)
    world.gate.leave(exchange)
    with pytest.raises(KeyError):
        world.gate.leave(exchange)
    assert world.gate.in_flight == {}


async def test_w1_who_comes_later_never_passes_one_who_waits(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    fake.release.set()
    await edge.publish(loading())
    early = chat(edge, messages=[{"role": "user", "content": "early"}])
    await waiting(edge, 1)
    crowd = [chat(edge) for _ in range(2)]
    await waiting(edge, 3)
    await edge.publish(ready(fake))
    await asyncio.gather(early, *crowd, chat(edge))
    assert b"early" in fake.seen[0].body


async def test_w1_steady_traffic_does_not_starve_who_waits() -> None:
    world = World()
    world.hold(b="smol")
    for _ in range(4):
        world.arrive()
    first = world.waiting[0]
    for _ in range(2):
        world.arrive()
        world.finish(0)
    assert first not in world.waiting


@pytest.mark.usefixtures("briefly")
async def test_w3_a_client_that_does_not_read_holds_up_nobody(
    edge: Running, fake: upstreams.FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telling, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(telling.Teller, "_text", lambda *_: "x" * 200_000 + str(time.monotonic()))
    fake.release.set()
    await edge.publish(loading())
    port = int(edge.url.rpartition(":")[2])
    _, writer = await asyncio.open_connection("127.0.0.1", port, limit=100)
    body = b'{"stream": true, "messages": []}'
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-api-key: {key_of(OWNER)}\r\n"
    head += f"prefer: wait=30\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await waiting(edge, 1)
    patient = chat(edge)
    await waiting(edge, 2)
    await asyncio.wait({patient}, timeout=0.5)  # the first one's pipe is full by now
    await edge.publish(ready(fake))
    await until(lambda: len(fake.seen) >= 1)  # let in, though it does not read
    writer.transport.abort()
    assert (await patient).status_code == 200


async def test_w6_a_request_that_meets_a_stopped_server_goes_back_to_the_queue(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    fake.release.set()
    async with upstreams.running(upstreams.llama) as stopped:
        stopped_url = stopped.url
    await edge.publish(lane(upstream=upstream_at(stopped_url, slots=1)))
    request = chat(edge)
    await waiting(edge, 1)
    await edge.publish(loading(generation=2))
    await asyncio.wait({request}, timeout=0.1)
    assert not request.done()
    await edge.publish(lane(upstream=upstream_at(fake.url, generation=2, slots=1), generation=2))
    assert (await request).status_code == 200


async def test_w6_a_server_that_was_away_for_a_moment_is_tried_again(
    edge: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with upstreams.running(upstreams.llama) as fake:
        url = fake.url
    await edge.publish(lane(upstream=upstream_at(url, slots=1)))
    request = chat(edge)
    await waiting(edge, 1)
    again = upstreams.FakeServer(upstreams.llama)
    server = await asyncio.start_server(again.serve, "127.0.0.1", int(url.rpartition(":")[2]))
    async with server:
        assert (await request).status_code == 200
        await edge.publish(loading())
        await until(lambda: again.open_connections == 0)


@pytest.mark.usefixtures("briefly")
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
async def test_w9_what_fails_after_200_is_an_event_and_never_a_bare_object(
    edge: Running, path: str
) -> None:
    await edge.publish(loading())
    body, headers = {"messages": [], "stream": True}, bearer(MEMBER) | {"prefer": "wait=30"}
    request = asyncio.create_task(edge.client.post(path, json=body, headers=headers))
    await asyncio.wait({request}, timeout=0.3)
    await edge.publish(lane(upstream=None, phase="failed", failure="out of memory"))
    answer = await request
    *comments, last, end = answer.text.split("\n\n")
    assert (answer.status_code, end) == (200, "")
    assert all(each.startswith(": slotserve queue position=1") for each in comments)
    start = "event: error\ndata: {" if path == "/v1/messages" else "data: {"
    assert last.startswith(start)
    assert '"model_failed"' in last
