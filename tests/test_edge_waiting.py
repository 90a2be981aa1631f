"""Waiting at the gateway: for a slot, for a load or a switch, in silence or in a stream."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.edge.app import EdgeApp
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import MEMBER, OWNER, Running, bearer, edge_at, grant, lane, tokens, until
from tests.edge_harness import upstream as upstream_at
from tests.test_edge_cancel import SCOPE, Client
from tests.waiting_cast import chat, four_places_at, loading, ready, waiting

pytestmark = pytest.mark.valkey
LOADING: dict[str, Any] = {"upstream": None, "phase": "starting"}


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with four_places_at(valkey_server.url) as running:
        yield running


@pytest.fixture
async def fake() -> AsyncIterator[upstreams.FakeServer]:
    async with upstreams.running(upstreams.answers_when_released) as server:
        yield server


async def test_a_server_never_gets_more_requests_than_its_slots(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    await edge.publish(ready(fake, slots=2))
    requests = [chat(edge) for _ in range(4)]
    await waiting(edge, 2)
    await until(lambda: len(fake.seen) == 2)
    assert edge.in_flight == 2
    fake.release.set()
    assert [answer.status_code for answer in await asyncio.gather(*requests)] == [200] * 4


async def test_nobody_knows_the_slots_so_nobody_waits(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    await edge.publish(ready(fake, slots=None))
    requests = [chat(edge) for _ in range(9)]
    await until(lambda: len(fake.seen) == 9)
    fake.release.set()
    await asyncio.gather(*requests)


async def test_what_a_server_answers_beside_its_slots_takes_none(edge: Running) -> None:
    async with upstreams.running(upstreams.answers_when_released) as fake:
        await edge.publish(ready(fake))
        requests = [chat(edge), chat(edge)]
        await waiting(edge, 1)
        counting = edge.client.post(
            "/v1/messages/count_tokens", json={"messages": []}, headers=bearer(MEMBER)
        )
        requests.append(asyncio.create_task(counting))
        await until(lambda: edge.in_flight == 2)
        fake.release.set()
        assert [answer.status_code for answer in await asyncio.gather(*requests)] == [200] * 3


async def test_who_does_not_ask_is_refused_while_a_model_loads(edge: Running) -> None:
    await edge.publish(loading())
    answer = await chat(edge)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "model_loading")
    assert "preference-applied" not in answer.headers


async def test_who_asks_is_served_when_the_model_is_loaded(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    fake.release.set()
    await edge.publish(loading())
    request = chat(edge, "wait=30")
    await waiting(edge, 1)
    assert edge.in_flight == 0  # a waiting request holds no drain up
    await edge.publish(ready(fake))
    answer = await request
    assert (answer.status_code, answer.headers["preference-applied"]) == (200, "wait=30")


async def test_a_setting_lets_everybody_wait(
    valkey_server: ValkeyServer, fake: upstreams.FakeServer
) -> None:
    fake.release.set()
    async with edge_at(valkey_server.url, wait_seconds=30.0) as edge:
        await edge.publish(loading())
        request, hasty = chat(edge), chat(edge, "wait=0")
        assert (await hasty).status_code == 503
        await waiting(edge, 1)
        await edge.publish(ready(fake))
        assert (await request).status_code == 200


async def test_when_the_time_is_over_what_holds_then_is_said(edge: Running) -> None:
    await edge.publish(lane(draining=True, drain_until=time.time() + 60, target="smol"))
    request = chat(edge, "wait=1", model="smol")
    await waiting(edge, 1)
    began = time.monotonic()
    await edge.publish(loading(target="smol"))
    answer = await request
    assert 0.7 < time.monotonic() - began < 30
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "model_loading")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"grants": (grant(OWNER, 0, 1e11),)}, "gpu_reserved"),
        ({**LOADING, "phase": "stopped", "target": None}, "no_model_loaded"),
        ({"upstream": upstream_at(preset="smol")}, "model_not_loaded"),
        ({**LOADING, "phase": "failed"}, "model_failed"),
        ({**LOADING, "phase": "failed", "retry_at": 1e11}, "model_failed"),
    ],
    ids=["another's slot", "nothing comes", "another model", "no retry", "a retry too late"],
)
async def test_where_waiting_cannot_help_nobody_waits(
    edge: Running, fields: dict[str, Any], code: str
) -> None:
    await edge.publish(lane(**fields))
    answer = await chat(edge, "wait=30")
    assert answer.json()["error"]["code"] == code


async def test_who_asks_for_another_model_than_the_one_that_loads_does_not_wait(
    edge: Running,
) -> None:
    await edge.publish(loading(target="smol"))
    answer = await chat(edge, "wait=30")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "model_loading")
    assert answer.headers["x-slotserve-lane"] == "main"
    request = chat(edge, "wait=1", model="smol")
    await waiting(edge, 1)
    assert (await request).status_code == 503


async def test_a_client_who_left_while_other_edges_were_asked_takes_no_place(
    edge: Running, fake: upstreams.FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await edge.publish(ready(fake))
    asked, answered = asyncio.Event(), asyncio.Event()

    async def take(*_: Any) -> bool:
        asked.set()
        await answered.wait()
        return False

    monkeypatch.setattr(edge.edge.slots, "take_now", lambda *_: None)
    monkeypatch.setattr(edge.edge.slots, "take", take)
    client = Client()
    task = asyncio.create_task(EdgeApp(edge.edge)(client.of(SCOPE), client.receive, client.send))
    await asked.wait()
    client.leave()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    answered.set()
    async with asyncio.timeout(30):
        await task
    assert client.sent == []


async def test_a_failed_model_is_waited_for_when_its_retry_comes_in_time(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    fake.release.set()
    await edge.publish(lane(upstream=None, phase="failed", retry_at=time.time() + 5))
    request = chat(edge, "wait=30")
    await waiting(edge, 1)
    await edge.publish(ready(fake))
    assert (await request).status_code == 200


async def test_a_lane_that_serves_first_serves(edge: Running, fake: upstreams.FakeServer) -> None:
    fake.release.set()
    await edge.publish(loading(), lane("other", upstream=None, phase="stopped", target=None))
    request = chat(edge, "wait=30")
    await waiting(edge, 1)
    await edge.publish(loading(), lane("other", upstream=upstream_at(fake.url)))
    assert (await request).headers["x-slotserve-lane"] == "other"


async def test_the_end_of_anothers_booking_lets_in_who_waits_by_the_edges_own_clock(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    fake.release.set()
    end = time.time() + 0.5
    booked = ready(fake, slug="booked", grants=(grant(OWNER, 0, end),))
    await edge.publish(loading(), booked)
    request = chat(edge, "wait=30")
    await waiting(edge, 1)
    assert (await request).headers["x-slotserve-lane"] == "booked"
    assert 0 <= time.time() - end < 0.3


async def test_an_edge_that_ends_refuses_who_waits(edge: Running) -> None:
    await edge.publish(loading())
    request = chat(edge, "wait=30")
    await waiting(edge, 1)
    edge.server.should_exit = True
    answer = await request
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "gateway_stopping")


async def test_an_edge_that_stops_still_lets_in_who_waits_for_a_slot(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    await edge.publish(ready(fake))
    requests = [chat(edge), chat(edge)]
    await waiting(edge, 1)
    edge.server.should_exit = True
    await until(lambda: edge.edge.is_stopping)
    fake.release.set()
    assert [answer.status_code for answer in await asyncio.gather(*requests)] == [200, 200]


async def test_a_token_over_its_limit_takes_no_place_in_the_queue(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    await edge.publish(ready(fake), entries=tokens(requests_per_minute=2))
    requests = [chat(edge), chat(edge)]
    await waiting(edge, 1)
    refused = await chat(edge)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limited")
    assert edge.edge.gate.waiting == {"main": 1}
    fake.release.set()
    await asyncio.gather(*requests)


async def test_the_tokens_of_an_answer_are_charged(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    fake.release.set()
    await edge.publish(ready(fake), entries=tokens(tokens_per_minute=10))
    assert (await chat(edge)).status_code == 200  # it used 10
    assert (await chat(edge)).json()["error"]["code"] == "rate_limited"


async def test_what_was_waited_is_told_to_the_owner_of_the_usage(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    await edge.publish(ready(fake))
    puts: list[Any] = []
    edge.edge.usage.put = puts.append  # type: ignore[assignment,method-assign]
    began = time.monotonic()
    requests = [chat(edge), chat(edge)]
    await waiting(edge, 1)
    await asyncio.wait(requests, timeout=0.1)
    fake.release.set()
    await asyncio.gather(*requests)
    await until(lambda: len(puts) == 2)
    waited = sorted(usage.queue_ms for usage in puts)
    assert waited[0] == 0
    assert 90 < waited[1] < (time.monotonic() - began) * 1000
    assert edge.edge.gate.admitted_after_wait == {"main": 1}
