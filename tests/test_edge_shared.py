"""Slots of several edges on one Valkey, also when it is away."""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.edge.edge import Edge
from gateway.edge.slots import Slots
from tests.conftest import ValkeyServer
from tests.edge_company import edges_joined, unanswered
from tests.edge_harness import Running, edge_at, until
from wire.edges import SILENT_AFTER_SECONDS

pytest_plugins = ["tests.edge_fixtures"]
pytestmark = pytest.mark.valkey


@contextlib.asynccontextmanager
async def frozen(edge: Edge) -> AsyncIterator[None]:
    """An edge that says nothing more, as if its process were dead."""

    async def never(**_: object) -> None:
        raise ConnectionError

    scripts = edge.roster._script, edge.shared._script
    edge.roster._script = edge.shared._script = never  # type: ignore[assignment]
    yield
    edge.roster._script, edge.shared._script = scripts


async def take_all(slots: Slots, lane: str, most: int) -> int:
    """Take until refused; how many."""
    taken = 0
    while await slots.take(lane, most):
        taken += 1
    return taken


async def test_all_edges_together_never_hold_more_than_the_slots(edges: list[Running]) -> None:
    held, most = 0, 0

    async def ask(slots: Slots, choice: random.Random) -> None:
        nonlocal held, most
        for _ in range(60):
            if await slots.take("main", 5):
                held += 1
                most = max(most, held)
                await asyncio.sleep(choice.random() / 200)
                held -= 1
                slots.give("main")
            await asyncio.sleep(choice.random() / 200)

    askers = [ask(each.edge.slots, random.Random(i)) for i in range(6) for each in edges]
    await asyncio.gather(*askers)
    assert (most, held) == (5, 0)
    assert sum(each.edge.slots.excess for each in edges) == 0


async def test_one_call_serves_all_that_has_come_together(
    edges: list[Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    edge = edges[0].edge
    calls, call = 0, edge.shared._script

    async def counted(**given: Any) -> Any:
        nonlocal calls
        calls += 1
        return await call(**given)

    monkeypatch.setattr(edge.shared, "_script", counted)
    taken = await asyncio.gather(*(edge.slots.take("main", 80) for _ in range(100)))
    assert taken.count(True) == 80
    assert calls <= 3  # the last heartbeat's, one that was on its way, and one for the rest


async def test_a_slot_freed_at_one_edge_is_offered_at_the_others_at_once(
    edges: list[Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (each.edge.slots for each in edges)
    woken: list[str] = []
    monkeypatch.setattr(Slots, "tick", lambda _: None)
    second.on_free = third.on_free = woken.append
    assert await take_all(first, "main", 2) == 2
    assert not await second.take("main", 2)
    first.give("main")
    await until(lambda: woken == ["main"])
    assert await second.take("main", 2)


async def test_a_valkey_that_says_nothing_costs_one_request_a_wait_and_others_nothing(
    edges: list[Running], valkey_server: ValkeyServer
) -> None:
    slots = edges[0].edge.slots
    with unanswered(valkey_server, seconds=2.0):
        begun = time.monotonic()
        assert await slots.take("main", 9)
        first = time.monotonic() - begun
        assert await take_all(slots, "main", 9) == 2  # its share is three
        rest = time.monotonic() - begun - first
    assert 1.9 < first < 3.9  # one wait, not two
    assert rest < 1.9  # nor one more for those after it


async def test_after_a_pause_the_slots_are_shared_again_and_none_is_forgotten(
    edges: list[Running], valkey_server: ValkeyServer
) -> None:
    with unanswered(valkey_server):
        for each in edges:
            assert await each.edge.slots.take("main", 6)
    await until(lambda: not any(each.edge.company.is_away for each in edges))
    assert await take_all(edges[0].edge.slots, "main", 6) == 3
    assert [each.edge.company.edges for each in edges] == [3, 3, 3]


async def test_a_valkey_that_was_killed_is_told_anew_what_is_held(
    edges: list[Running], valkey_server: ValkeyServer
) -> None:
    for each in edges:
        assert await take_all(each.edge.slots, "main", 9) in {0, 9}
    holder = next(each.edge.slots for each in edges if each.edge.slots.held("main"))
    valkey_server.stop()
    holder.give("main")
    await until(lambda: all(each.edge.company.is_away for each in edges))
    valkey_server.start()
    await until(lambda: not any(each.edge.company.is_away for each in edges))
    taken = [await take_all(each.edge.slots, "main", 9) for each in edges]
    assert sum(taken) == 1
    assert [each.edge.company.edges for each in edges] == [3, 3, 3]


async def test_where_slots_are_fewer_than_edges_the_excess_is_reported(
    edges: list[Running], valkey_server: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    valkey_server.stop()
    await until(lambda: all(each.edge.company.is_away for each in edges))
    assert [await take_all(each.edge.slots, "main", 1) for each in edges] == [1, 1, 1]
    valkey_server.start()
    await until(lambda: sum(each.edge.slots.excess for each in edges) == 2)
    assert "lane main: 1 requests beyond its slots" in caplog.text


async def test_an_edge_that_dies_gives_its_slots_back_after_its_silence(
    edges: list[Running],
) -> None:
    dead, living, _ = (each.edge for each in edges)
    assert await take_all(dead.slots, "main", 4) == 4
    async with frozen(dead):
        begun = time.monotonic()
        assert not await living.slots.take("main", 4)
        await until(lambda: living.company.edges == 2, seconds=30)
        assert time.monotonic() - begun > SILENT_AFTER_SECONDS - 1.5
        assert await take_all(living.slots, "main", 4) == 4


@pytest.mark.usefixtures("patient")
async def test_slots_hold_while_an_edge_joins_and_leaves(valkey_server: ValkeyServer) -> None:
    held, most, is_over = 0, 0, asyncio.Event()

    async def ask(slots: Slots, until_when: asyncio.Event) -> None:
        nonlocal held, most
        while not until_when.is_set():
            if await slots.take("main", 4):
                held += 1
                most = max(most, held)
                await asyncio.sleep(random.random() / 200)
                held -= 1
                slots.give("main")
            await asyncio.sleep(random.random() / 500)

    async with edge_at(valkey_server.url, edge_id="a") as one, asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(ask(one.edge.slots, is_over))
        for name in ("b", "c"):
            async with edges_joined(valkey_server.url, one, name) as other:
                leaves = asyncio.Event()
                askers = [group.create_task(ask(other.edge.slots, leaves)) for _ in range(8)]
                await asyncio.sleep(0.3)
                leaves.set()
                await asyncio.wait(askers)
            await until(lambda: one.edge.company.is_alone)
        is_over.set()
    assert (most, held) == (4, 0)
