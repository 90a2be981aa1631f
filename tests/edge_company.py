"""Several edges in this process that know each other through one Valkey."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from gateway.edge import shared
from tests.conftest import ValkeyServer
from tests.edge_harness import Running, edge_at, until


@contextlib.asynccontextmanager
async def edges_at(url: str, *names: str, **options: Any) -> AsyncIterator[list[Running]]:
    """Edges that know each other and have been answered; options are settings of all."""
    async with contextlib.AsyncExitStack() as stack:
        running = await asyncio.gather(
            *(stack.enter_async_context(edge_at(url, edge_id=name, **options)) for name in names)
        )
        await until(lambda: all(each.edge.company.edges == len(names) for each in running))
        await until(lambda: not any(each.edge.company.is_away for each in running))
        yield running


@contextlib.asynccontextmanager
async def edges_joined(url: str, one: Running, name: str) -> AsyncIterator[Running]:
    """One more edge, for a while."""
    async with edge_at(url, edge_id=name) as other:
        await until(lambda: not (one.edge.company.is_alone or other.edge.company.is_alone))
        await until(lambda: not (one.edge.company.is_away or other.edge.company.is_away))
        yield other


@contextlib.contextmanager
def unanswered(valkey_server: ValkeyServer, seconds: float = 0.05) -> Iterator[None]:
    """Valkey says nothing, and nobody waits for it longer than this."""
    with pytest.MonkeyPatch.context() as patch, valkey_server.paused():
        patch.setattr(shared, "ANSWER_SECONDS", seconds)
        yield
