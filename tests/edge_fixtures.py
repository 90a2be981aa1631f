"""Edges with nothing special about them, and model servers behind their one lane."""

from collections.abc import AsyncIterator

import pytest

from gateway.edge import edge as edge_module
from gateway.edge import shared
from tests import upstream_shapes, upstreams, ws_client, ws_upstream
from tests.conftest import ValkeyServer
from tests.edge_company import edges_at
from tests.edge_harness import Running, edge_at, lane, until
from tests.edge_harness import upstream as upstream_at


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    """An edge that counts no request any more when the test is over."""
    async with edge_at(valkey_server.url) as running:
        yield running
        await until(lambda: running.in_flight == 0)


@pytest.fixture
async def every_route(edge: Running) -> AsyncIterator[upstreams.FakeServer]:
    """A model server that has all routes, in the shapes that official clients parse."""
    async with upstreams.running(upstream_shapes.every_route) as server:
        await edge.publish(lane(upstream=upstream_at(server.url)))
        yield server


@pytest.fixture
async def hearing(edge: Running) -> AsyncIterator[ws_upstream.FakeSocket]:
    """A model server that reads and says nothing; no session is left when the test is over."""
    async with ws_upstream.running(ws_upstream.hears) as server:
        await ws_client.serve(edge, server)
        yield server
        await until(lambda: not server.open)


@pytest.fixture
async def edges(valkey_server: ValkeyServer, patient: None) -> AsyncIterator[list[Running]]:
    """Three of them."""
    async with edges_at(valkey_server.url, "a", "b", "c") as running:
        yield running


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers hold only where each question is answered: a busy machine may take its time."""
    monkeypatch.setattr(shared, "ANSWER_SECONDS", 5.0)


@pytest.fixture
def unswept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks each second: what happens, happens at once."""
    monkeypatch.setattr(edge_module, "_SWEEP_SECONDS", 600.0)
