"""What tests of waiting share: lanes that load or have slots, and requests that ask to wait."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from gateway.edge import telling
from gateway.edge.table import LaneRoute
from tests import upstreams
from tests.edge_harness import MEMBER, Running, bearer, edge_at, lane, until
from tests.edge_harness import upstream as upstream_at


@contextlib.asynccontextmanager
async def four_places_at(redis_url: str) -> AsyncIterator[Running]:
    """An edge where four may wait for each lane, and in the end nobody does."""
    async with edge_at(redis_url, queue_per_lane=4) as running:
        yield running
        await until(lambda: running.in_flight == 0)
        assert running.edge.gate.waiting == {}


def loading(**fields: Any) -> LaneRoute:
    """A lane that loads qwen."""
    return lane(**{"upstream": None, "phase": "starting"} | fields)


def ready(fake: upstreams.FakeServer, slots: int | None = 1, **fields: Any) -> LaneRoute:
    """A lane that runs qwen there."""
    return lane(upstream=upstream_at(fake.url, slots=slots), **fields)


def chat(
    edge: Running, wait: str | None = None, *, owner: int = MEMBER, **fields: Any
) -> "asyncio.Task[httpx.Response]":
    """This person's request, on its way."""
    body = {"messages": [], "model": "qwen"} | fields
    headers = bearer(owner) | ({"prefer": wait} if wait is not None else {})
    return asyncio.create_task(edge.client.post("/v1/chat/completions", json=body, headers=headers))


async def waiting(edge: Running, count: int) -> None:
    """Until so many wait for the lane `main`."""
    await until(lambda: edge.edge.gate.waiting.get("main", 0) == count)


async def gone(request: "asyncio.Task[httpx.Response]") -> None:
    """Its client leaves."""
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)


def code(answer: httpx.Response) -> tuple[int, str]:
    """Status and code of a refusal."""
    return answer.status_code, answer.json()["error"]["code"]


def events(text: str) -> list[str]:
    """Events and comments of a stream."""
    return [each for each in text.split("\n\n") if each]


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams that wait begin soon, and look often."""
    monkeypatch.setattr(telling, "MOMENT_SECONDS", 0.05)
    monkeypatch.setattr(telling, "LOOK_SECONDS", 0.02)
