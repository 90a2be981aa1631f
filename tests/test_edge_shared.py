"""Several edges on one Valkey: what they share, and what happens when it is away."""

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from gateway.edge import shared
from gateway.edge.slots import Slots
from tests.conftest import ValkeyServer
from tests.edge_harness import Running, edge_at, until

pytestmark = pytest.mark.valkey


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers hold only where each question is answered: a busy machine may take its time."""
    monkeypatch.setattr(shared, "ANSWER_SECONDS", 5.0)


@contextlib.asynccontextmanager
async def edges_at(url: str, *names: str) -> AsyncIterator[list[Running]]:
    """Edges that know each other and have been answered."""
    async with contextlib.AsyncExitStack() as stack:
        running = await asyncio.gather(
            *(stack.enter_async_context(edge_at(url, edge_id=name)) for name in names)
        )
        await until(lambda: all(each.edge.company.edges == len(names) for each in running))
        await until(lambda: not any(each.edge.company.is_away for each in running))
        yield running


@pytest.fixture
async def edges(valkey_server: ValkeyServer) -> AsyncIterator[list[Running]]:
    async with edges_at(valkey_server.url, "a", "b", "c") as running:
        yield running


@contextlib.contextmanager
def paused(server: ValkeyServer) -> Iterator[None]:
    """Valkey takes connections and says nothing."""
    assert server.process is not None
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.process.pid, signal.SIGCONT)


async def take_all(slots: Slots, lane: str, most: int) -> int:
    """Take until refused; how many."""
    taken = 0
    while await slots.take(lane, most):
        taken += 1
    return taken


@pytest.mark.usefixtures("patient")
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


@pytest.mark.usefixtures("patient")
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


@pytest.mark.usefixtures("patient")
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
    await until(lambda: woken == ["main"], seconds=2)
    assert await second.take("main", 2)


async def test_a_valkey_that_says_nothing_costs_one_request_50_ms_and_others_nothing(
    edges: list[Running], valkey_server: ValkeyServer
) -> None:
    slots = edges[0].edge.slots
    with paused(valkey_server):
        begun = time.monotonic()
        assert await slots.take("main", 9)
        first = time.monotonic() - begun
        assert await take_all(slots, "main", 9) == 2  # its share is three
        rest = time.monotonic() - begun - first
    assert shared.ANSWER_SECONDS * 0.9 < first < shared.ANSWER_SECONDS + 0.2
    assert rest < 0.05


async def test_after_a_pause_the_slots_are_shared_again_and_none_is_forgotten(
    edges: list[Running], valkey_server: ValkeyServer
) -> None:
    with paused(valkey_server):
        for each in edges:
            assert await each.edge.slots.take("main", 6)
    await until(lambda: not any(each.edge.company.is_away for each in edges))
    await asyncio.gather(*(each.edge.shared.ask() for each in edges))
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
