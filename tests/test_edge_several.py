"""Three edge processes on one Valkey: what holds across all of them."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from pytest_django import Settings

from gateway.edge.table import digest_of
from lanes import barrier
from lanes.steps import Barrier
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import OWNER, Publisher, http_client, key_of, lane, tokens
from tests.edge_harness import upstream as upstream_at
from tests.edge_processes import Kept, Process, chat, edge_process, is_divided, publishing, soon
from wire.edges import SILENT_AFTER_SECONDS

pytestmark = [pytest.mark.valkey, pytest.mark.process]
NAMES = ("a", "b", "c")
SILENCE = SILENT_AFTER_SECONDS + 5  # until a silent edge has been noticed for sure
SETTINGS = {"SLOTSERVE_QUEUE_PER_LANE": "0", "SLOTSERVE_EDGE_STOP_SECONDS": "1"}


@pytest.fixture
async def fake() -> AsyncIterator[upstreams.FakeServer]:
    async with upstreams.running(upstreams.llama) as server:
        yield server
        server.release.set()


@pytest.fixture
async def publisher(valkey: str, fake: upstreams.FakeServer) -> AsyncIterator[Publisher]:
    async with publishing(valkey) as publisher:
        await publisher.publish(lane(upstream=upstream_at(fake.url)))
        yield publisher


@pytest.fixture
async def edges(valkey: str, publisher: Publisher) -> AsyncIterator[list[Process]]:
    with contextlib.ExitStack() as stack:
        found = [
            stack.enter_context(edge_process(valkey, edge_id=name, settings=SETTINGS))
            for name in NAMES
        ]
        await asyncio.gather(*(edge.is_ready() for edge in found))
        for edge in found:
            await soon(lambda edge=edge: _knows_all(edge))  # type: ignore[misc]
        yield found


def _knows_all(edge: Process) -> bool:
    return "share lanes and limits: 3," in edge.said()


@pytest.fixture
def see(settings: Settings, tmp_path: Path, fake: upstreams.FakeServer) -> Any:
    """What a host sees of its lane: the barrier of our own listening process."""
    settings.SLOTSERVE_DATA = tmp_path
    port = urlsplit(fake.url).port
    assert port is not None
    return lambda: barrier.see("main", 1, os.getpid(), port)


async def statuses(edges: list[Process]) -> list[int]:
    """What each edge answers the owner now."""
    return [answer.status_code for answer in await asyncio.gather(*map(chat, edges))]


async def test_a_revoked_token_is_refused_by_all_soon(
    edges: list[Process], publisher: Publisher, fake: upstreams.FakeServer
) -> None:
    assert await statuses(edges) == [200, 200, 200]
    entries = tokens()
    del entries[digest_of(key_of(OWNER).encode())]
    await publisher.publish(lane(upstream=upstream_at(fake.url)), entries=entries)
    async with asyncio.timeout(30):
        while await statuses(edges) != [401, 401, 401]:
            pass


async def test_the_barrier_is_busy_while_any_edge_has_a_request(
    edges: list[Process], fake: upstreams.FakeServer, see: Any
) -> None:
    fake.behaviour = upstreams.answers_when_released
    await soon(lambda: see() is Barrier.ZERO)
    for edge in edges:
        fake.release.clear()
        asked = asyncio.create_task(chat(edge))
        await soon(lambda: see() is Barrier.BUSY)
        fake.release.set()
        assert (await asked).status_code == 200
        await soon(lambda: see() is Barrier.ZERO)


async def test_a_killed_edge_counts_no_more_when_its_connections_are_gone(
    edges: list[Process], fake: upstreams.FakeServer, see: Any
) -> None:
    fake.behaviour = upstreams.hangs
    kept = await _hanging(edges[0], fake)
    await soon(lambda: see() is Barrier.BUSY)
    edges[0].popen.kill()
    await soon(lambda: see() is Barrier.ZERO, SILENCE)
    assert fake.open_connections == 0
    kept.close()


async def test_an_edge_that_stands_still_with_a_request_is_never_taken_for_empty(
    edges: list[Process], fake: upstreams.FakeServer, see: Any
) -> None:
    fake.behaviour = upstreams.hangs
    kept = await _hanging(edges[0], fake)
    await soon(lambda: see() is Barrier.BUSY)
    edges[0].popen.send_signal(signal.SIGSTOP)
    seen = await _seen_for(see, SILENCE)
    assert Barrier.ZERO not in seen
    assert seen[-1] is Barrier.UNKNOWN  # so the host waits until drain_until
    kept.close()


async def _hanging(edge: Process, fake: upstreams.FakeServer) -> Kept:
    """A request that the model server has."""
    kept = Kept(edge.port)
    await kept.send()
    await soon(lambda: fake.seen)
    return kept


async def _seen_for(see: Any, seconds: float) -> list[Barrier]:
    """The barrier at each look."""
    end = time.monotonic() + seconds
    found = []
    while time.monotonic() < end:
        found.append(see())
        await asyncio.sleep(0.1)
    return found


async def test_all_edges_together_send_no_more_than_the_slots(
    edges: list[Process], publisher: Publisher, fake: upstreams.FakeServer
) -> None:
    fake.behaviour = upstreams.answers_when_released
    await publisher.publish(lane(upstream=upstream_at(fake.url, slots=4)))
    await _until_slots(edges, fake, publisher)
    asked = [asyncio.create_task(chat(edge)) for edge in edges for _ in range(4)]
    await soon(
        lambda: (
            (sum(task.done() for task in asked) == 8 and fake.open_connections == 4)
            or any(map(is_divided, edges))
        )
    )
    fake.release.set()
    answers = [(await task).status_code for task in asked]
    assert set(answers) == {200, 429}
    if not any(map(is_divided, edges)):
        assert sorted(answers) == [200] * 4 + [429] * 8


async def _until_slots(
    edges: list[Process], fake: upstreams.FakeServer, publisher: Publisher
) -> None:
    """Wait until all edges hold the newest table."""
    async with http_client() as client:
        for edge in edges:
            version = 0
            while version < publisher.version:
                ready = await client.get(f"{edge.url}/ready")
                version = ready.json()["table"]["version"]


async def test_a_limit_of_a_token_is_one_for_all_edges(
    edges: list[Process], publisher: Publisher, fake: upstreams.FakeServer
) -> None:
    entries = tokens(requests_per_minute=30)
    await publisher.publish(lane(upstream=upstream_at(fake.url)), entries=entries)
    await _until_slots(edges, fake, publisher)
    began = time.monotonic()
    answers = await asyncio.gather(*(chat(edge) for edge in edges for _ in range(20)))
    refilled = 1 + (time.monotonic() - began) / 2
    served = [answer for answer in answers if answer.status_code == 200]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert served
    assert 30 <= len(served) <= 30 + refilled or any(map(is_divided, edges))
    assert len(served) + len(refused) == 60
    assert {answer.json()["error"]["code"] for answer in refused} == {"rate_limited"}


@pytest.mark.parametrize(("slots", "share"), [(7, 2), (2, 1)])
async def test_without_valkey_each_edge_has_its_share_and_tells_of_the_excess(
    edges: list[Process],
    publisher: Publisher,
    fake: upstreams.FakeServer,
    valkey_server: ValkeyServer,
    slots: int,
    share: int,
) -> None:
    fake.behaviour = upstreams.answers_when_released
    await publisher.publish(lane(upstream=upstream_at(fake.url, slots=slots)))
    await _until_slots(edges, fake, publisher)
    first = [await _let_in(edges[0], fake) for _ in range(slots)]
    with valkey_server.paused():
        others = [asyncio.create_task(chat(edge)) for edge in edges[1:] for _ in range(share + 1)]
        await soon(lambda: sum(task.done() for task in others) == 2)
        await soon(lambda: fake.open_connections == slots + 2 * share)
    await soon(lambda: _excess(edges) == 2 * share)
    fake.release.set()
    answers = [(await task).status_code for task in (*first, *others)]
    assert answers.count(429) == 2
    assert answers.count(200) == slots + 2 * share


async def _let_in(edge: Process, fake: upstreams.FakeServer) -> asyncio.Task[httpx.Response]:
    """A request that the model server has. On a busy machine an edge that hears of Valkey too late
    has its share alone for a moment, and refuses what is more."""
    before = fake.open_connections
    async with asyncio.timeout(60):
        while True:
            request = asyncio.create_task(chat(edge))
            await soon(lambda: fake.open_connections > before or request.done())  # noqa: B023
            if not request.done():
                return request
            assert (await request).status_code == 429
            assert is_divided(edge)


def _excess(edges: list[Process]) -> float:
    """Requests beyond the slots, as the edges tell Prometheus."""
    total = 0.0
    for edge in edges:
        text = httpx.get(f"{edge.url}/metrics", verify=False, timeout=60).text
        lines = (line for line in text.splitlines() if "slots_excess" in line and line[0] != "#")
        total += sum(float(line.rpartition(" ")[2]) for line in lines)
    return total
