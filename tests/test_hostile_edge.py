"""Requests that are well formed and meant badly, over real sockets to the edge."""

from collections.abc import AsyncIterator

import pytest

from gateway.edge.body import find_model
from gateway.edge.headers import LONGEST_HEADER, MOST_HEADERS, upstream_headers
from gateway.edge.refusals import EdgeRefusal
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import OWNER, Running, bearer, edge_at, lane
from tests.edge_harness import upstream as upstream_at


@pytest.fixture
async def fake() -> AsyncIterator[upstreams.FakeServer]:
    async with upstreams.running(upstreams.llama) as server:
        yield server


@pytest.fixture
async def edge(valkey_server: ValkeyServer, fake: upstreams.FakeServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url) as running:
        await running.publish(lane(upstream=upstream_at(fake.url)))
        yield running


@pytest.mark.parametrize("body", [b"[" * 60_000, b'{"a":' * 10_000 + b"1" + b"}" * 10_000])
def test_a_small_body_that_is_all_depth_is_refused(body: bytes) -> None:
    found = find_model(body)
    assert isinstance(found, EdgeRefusal)
    assert (found.status, found.code) == (400, "invalid_request_error")


@pytest.mark.parametrize(
    ("body", "model"),
    [
        (b'{"model": "qwen", "model": "smol"}', "smol"),  # as the model servers read it: the last
        (b'{"\\u006dodel": "smol"}', "smol"),
        (b'{"model": "qwen\\u0000"}', "qwen\0"),
        (b'{"model": "qwen", "Model": "smol", "x": {"model": "coder"}}', "qwen"),
    ],
)
def test_a_model_is_read_as_the_model_server_would_read_it(body: bytes, model: str) -> None:
    assert find_model(body) == model


def test_headers_that_a_model_server_would_refuse_stay_here() -> None:
    long = [(b"x-long", b"a" * LONGEST_HEADER), (b"x-short", b"a")]
    many = [(b"x-%d" % number, b"a") for number in range(500)]
    assert next(name for name, _ in upstream_headers(long)) == b"x-short"
    assert len(upstream_headers(many)) == MOST_HEADERS


@pytest.mark.valkey
@pytest.mark.parametrize(
    "path",
    [
        "//v1/models",
        "/v1//models",
        "/%76%31/models",
        "/v1/models;x",
        "/lanes/main/upstream",
        "/lanes/main/health",
        "/lanes/MAIN/v1/models",
        "/lanes/main/upstreams/health",
        "/lanes/main/slots/0",
        "/tools",
    ],
)
async def test_only_the_listed_paths_lead_anywhere(edge: Running, path: str) -> None:
    answer = await edge.client.get(edge.url + path, headers=bearer(OWNER))
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "route_not_found")
