"""Several edges on one Valkey: what they share, and what happens when it is away."""

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Iterator

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
