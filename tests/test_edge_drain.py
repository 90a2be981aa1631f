"""Drains, reloads, slots that begin, and the count that hosts wait for."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from gateway.edge import connections
from gateway.edge.table import LaneRoute
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import MEMBER, OWNER, Running, bearer, edge_at, grant, lane, until
from tests.edge_harness import upstream as upstream_at
from wire.edges import HEARTBEAT_SECONDS, LaneCount

pytestmark = pytest.mark.valkey


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url, drain_seconds=0.3) as running:
        yield running
        await until(lambda: running.in_flight == 0)


def _lane(fake: upstreams.FakeServer, **fields: Any) -> LaneRoute:
    return lane(upstream=upstream_at(fake.url), **fields)


def _draining(fake: upstreams.FakeServer, seconds: float, **fields: Any) -> LaneRoute:
    until_when = time.time() + seconds
    given = {"generation": 2, "draining": True, "drain_until": until_when, "target": "smol"}
    return _lane(fake, **given | fields)


async def _count(edge: Running) -> LaneCount | None:
    report = await edge.report()
    return report.lanes.get("main") if report else None


async def _until_count(edge: Running, generation: int, in_flight: int) -> None:
    async with asyncio.timeout(30):
        while await _count(edge) != LaneCount(generation, in_flight):
            await asyncio.sleep(0.005)


def _last_error(text: str) -> str:
    last = text.strip().split("\n\n")[-1]
    code: str = json.loads(last.removeprefix("data: "))["error"]["code"]
    return code


async def _running(edge: Running, fake: upstreams.FakeServer) -> "asyncio.Task[httpx.Response]":
    before = len(fake.seen)
    request = asyncio.create_task(edge.chat(owner=MEMBER, stream=True))
    await until(lambda: len(fake.seen) > before)
    return request


async def test_a_draining_lane_refuses_what_is_new_and_finishes_what_runs(edge: Running) -> None:
    async with upstreams.running(upstreams.answers_when_released) as fake:
        await edge.publish(_lane(fake))
        request = await _running(edge, fake)
        await edge.publish(_draining(fake, 20))
        refused = await edge.chat()
        assert refused.json()["error"]["code"] == "model_switching"
        assert int(refused.headers["retry-after"]) in {19, 20}
        await _until_count(edge, 2, 1)
        fake.release.set()
        assert (await request).status_code == 200
        await _until_count(edge, 2, 0)


@pytest.mark.parametrize(
    ("behaviour", "status"), [(upstreams.hangs, 503), (upstreams.streams_for_ever, 200)]
)
async def test_at_its_end_a_drain_ends_what_still_runs(
    edge: Running, behaviour: upstreams.Behaviour, status: int
) -> None:
    async with upstreams.running(behaviour) as fake:
        await edge.publish(_lane(fake))
        request = await _running(edge, fake)
        began = time.monotonic()
        await edge.publish(_draining(fake, 0.3))
        answer = await request
        assert 0.25 < time.monotonic() - began < 30
        assert answer.status_code == status
        code = answer.json()["error"]["code"] if status == 503 else _last_error(answer.text)
        assert code == "model_switching"
        assert status == 200 or answer.headers["retry-after"] == "1"
        await until(lambda: fake.open_connections == 0)
        await _until_count(edge, 2, 0)


async def test_a_reload_ends_what_runs_at_once(edge: Running) -> None:
    async with upstreams.running(upstreams.streams_for_ever) as fake:
        await edge.publish(_lane(fake))
        request = await _running(edge, fake)
        began = time.monotonic()
        await edge.publish(_draining(fake, 60, cut=True, target="qwen"))
        assert _last_error((await request).text) == "model_switching"
        assert time.monotonic() - began < 30
        await until(lambda: fake.open_connections == 0)


async def test_a_server_that_a_reload_ends_before_the_table_tells_is_still_switching(
    edge: Running,
) -> None:
    async with upstreams.running(upstreams.streams_for_ever) as fake:
        await edge.publish(_lane(fake))
        request = await _running(edge, fake)
        await edge.publisher.publish(_draining(fake, 20, cut=True), is_quiet=True)
    assert _last_error((await request).text) == "model_switching"


async def test_a_drain_that_is_called_off_lets_requests_run_on(edge: Running) -> None:
    async with upstreams.running(upstreams.streams_for_ever) as fake:
        await edge.publish(_lane(fake))
        request = await _running(edge, fake)
        await edge.publish(_draining(fake, 0.2))
        await edge.publish(_lane(fake, generation=3))
        await asyncio.wait({request}, timeout=0.4)
        assert not request.done()
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)


async def test_a_drain_closes_idle_connections(
    edge: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", 600.0)
    async with upstreams.running(upstreams.llama) as fake:
        await edge.publish(_lane(fake))
        await edge.chat()
        assert fake.open_connections == 1
        await edge.publish(_draining(fake, 600))
        await until(lambda: fake.open_connections == 0)


async def test_a_slot_that_begins_ends_others_after_the_drain_time_by_the_edges_own_clock(
    edge: Running,
) -> None:
    async with upstreams.running(upstreams.streams_for_ever) as fake:
        start = time.time() + 1.0  # a busy machine takes a while to have the stranger running
        await edge.publish(_lane(fake, grants=(grant(OWNER, start, start + 3600),)))
        stranger = await _running(edge, fake)
        owner = asyncio.create_task(edge.chat(owner=OWNER, stream=True))
        assert _last_error((await stranger).text) == "model_switching"
        assert time.time() - start > 0.25
        refused = await edge.chat(owner=MEMBER)
        assert (refused.status_code, refused.headers["retry-after"]) == (403, "3600")
        assert not owner.done()
        owner.cancel()
        await asyncio.gather(owner, return_exceptions=True)


async def test_the_end_of_ones_own_slot_cuts_nothing_while_nobody_else_begins(
    edge: Running,
) -> None:
    async with upstreams.running(upstreams.streams_for_ever) as fake:
        end = time.time() + 0.1
        await edge.publish(_lane(fake, grants=(grant(MEMBER, end - 60, end),)))
        request = await _running(edge, fake)
        await asyncio.wait({request}, timeout=0.6)
        assert not request.done()
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)


async def test_a_body_that_crosses_into_anothers_slot_is_refused_before_the_model(
    edge: Running,
) -> None:
    async with upstreams.running(upstreams.llama) as fake:
        await edge.publish(_lane(fake))
        crossed = asyncio.Event()

        async def slowly() -> AsyncIterator[bytes]:
            yield b'{"model": '
            await edge.publish(
                _lane(fake, grants=(grant(OWNER, time.time() - 1, time.time() + 60),))
            )
            crossed.set()
            yield b'"qwen"}'

        answer = await edge.client.post(
            "/v1/chat/completions", content=slowly(), headers=bearer(MEMBER)
        )
        assert crossed.is_set()
        assert answer.json()["error"]["code"] == "gpu_reserved"
        assert fake.accepted == 0


async def test_the_report_is_a_heartbeat_and_ends_in_goodbye(valkey_server: ValkeyServer) -> None:
    async with edge_at(valkey_server.url) as edge:
        await edge.publish(lane(generation=5))
        await _until_count(edge, 5, 0)
        first = await edge.report()
        assert first is not None
        assert abs(first.at_ms / 1000 - time.time()) < 1
        async with asyncio.timeout(3 * HEARTBEAT_SECONDS):
            while (later := await edge.report()) is None or later.at_ms == first.at_ms:
                await asyncio.sleep(0.02)
        assert not later.goodbye
        edge.server.should_exit = True
        async with asyncio.timeout(30):
            while not (await edge.report() or first).goodbye:
                await asyncio.sleep(0.01)


async def test_two_edges_report_each_for_itself(valkey_server: ValkeyServer) -> None:
    async with (
        upstreams.running(upstreams.answers_when_released) as fake,
        edge_at(valkey_server.url, edge_id="one") as one,
        edge_at(valkey_server.url, edge_id="two") as two,
    ):
        await one.publish(_lane(fake))
        await until(lambda: two.version == one.version)
        request = await _running(two, fake)
        await one.publish(_draining(fake, 20))
        await _until_count(one, 2, 0)
        await _until_count(two, 2, 1)
        fake.release.set()
        await request
        await _until_count(two, 2, 0)


async def test_an_edge_that_is_stopped_finishes_its_requests_first(
    valkey_server: ValkeyServer,
) -> None:
    async with (
        edge_at(valkey_server.url, stop_seconds=5.0) as edge,
        upstreams.running(upstreams.answers_when_released) as fake,
    ):
        await edge.publish(_lane(fake))
        request = await _running(edge, fake)
        edge.server.should_exit = True
        await asyncio.wait({request}, timeout=0.3)
        assert await _count(edge) == LaneCount(1, 1)
        fake.release.set()
        assert (await request).status_code == 200


@pytest.mark.parametrize(
    ("behaviour", "status"), [(upstreams.hangs, 503), (upstreams.streams_for_ever, 200)]
)
async def test_an_edge_that_is_stopped_says_so_to_what_does_not_finish(
    valkey_server: ValkeyServer,
    caplog: pytest.LogCaptureFixture,
    behaviour: upstreams.Behaviour,
    status: int,
) -> None:
    async with upstreams.running(behaviour) as fake, edge_at(valkey_server.url) as edge:
        await edge.publish(_lane(fake))
        request = await _running(edge, fake)
        edge.server.should_exit = True
        answer = await request
        assert answer.status_code == status
        code = answer.json()["error"]["code"] if status == 503 else _last_error(answer.text)
        assert code == "gateway_stopping"
        await until(lambda: fake.open_connections == 0)
    assert "Traceback" not in caplog.text
