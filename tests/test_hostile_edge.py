"""Requests that are well formed and meant badly, over real sockets to the edge."""

import time
from collections.abc import AsyncIterator

import pytest

from gateway.edge.body import MOST_VALUES, find_model
from gateway.edge.headers import LONGEST_HEADER, MOST_HEADERS, upstream_headers
from gateway.edge.refusals import EdgeRefusal
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import OWNER, Running, bearer, edge_at, key_of, lane
from tests.edge_harness import upstream as upstream_at

CHAT = "/v1/chat/completions"


@pytest.fixture
async def fake() -> AsyncIterator[upstreams.FakeServer]:
    async with upstreams.running(upstreams.llama) as server:
        yield server


@pytest.fixture
async def edge(valkey_server: ValkeyServer, fake: upstreams.FakeServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url) as running:
        await running.publish(lane(upstream=upstream_at(fake.url)))
        yield running


@pytest.mark.parametrize("value", [b"[]", b"{}", b"0"])
def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(value: bytes) -> None:
    body = b'{"a": [' + b",".join([value] * (MOST_VALUES + 1)) + b"]}"
    began = time.perf_counter()
    found = find_model(body)
    assert isinstance(found, EdgeRefusal)
    assert (found.status, found.code) == (413, "request_too_large")
    assert time.perf_counter() - began < 1


def test_a_long_text_or_picture_may_be_sent() -> None:
    prompt = b"word, word. [1] {x} " * 200_000
    assert find_model(b'{"model": "qwen", "prompt": "' + prompt + b'"}') == "qwen"
    assert find_model(b'{"model": "qwen", "url": "' + b"iVBORw0K" * 5_000_000 + b'"}') == "qwen"


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
    assert next(name for name, _ in upstream_headers(long, "k")) == "x-short"
    assert len(upstream_headers(many, "k")) == MOST_HEADERS + 2


@pytest.mark.valkey
async def test_a_query_goes_no_further_and_opens_nothing(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    key = key_of(OWNER)
    answer = await edge.client.post(CHAT, json={}, params={"api_key": key})
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
    answer = await edge.client.post(CHAT, json={}, params={"k": key}, headers=bearer(OWNER))
    assert answer.status_code == 200
    assert [seen.path for seen in fake.seen] == [CHAT]


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
        "/slots",
        "/props",
    ],
)
async def test_only_the_listed_paths_lead_anywhere(edge: Running, path: str) -> None:
    answer = await edge.client.get(edge.url + path, headers=bearer(OWNER))
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "route_not_found")
