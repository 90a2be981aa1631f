"""Every route over real sockets, the pass-through, and queries: what reaches the model server."""

import time
from collections.abc import AsyncIterator

import pytest

from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import MEMBER, OWNER, Running, bearer, edge_at, grant, key_of, lane
from tests.edge_harness import upstream as upstream_at
from tests.test_edge_routes import TABLE

pytestmark = pytest.mark.valkey
FORMS = ("audio/transcriptions", "audio/translations", "images/edits", "images/variations")


@pytest.fixture
async def fake() -> AsyncIterator[upstreams.FakeServer]:
    async with upstreams.running(upstreams.echoes) as server:
        yield server


@pytest.fixture
async def edge(valkey_server: ValkeyServer, fake: upstreams.FakeServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url) as running:
        await running.publish(lane(upstream=upstream_at(fake.url)))
        yield running


async def test_each_route_is_asked_for_by_the_servers_own_path(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    for prefix in ("", "/lanes/main"):
        for path, upstream, methods, _ in TABLE:
            for method in methods:
                body = {"model": "qwen"} if method == "POST" else None
                answer = await edge.client.request(
                    method, f"{prefix}{path}?a=%2F&b", headers=bearer(OWNER), json=body
                )
                assert answer.status_code == 200, path
                assert (fake.seen[-1].method, fake.seen[-1].path) == (method, f"{upstream}?a=%2F&b")


async def test_a_head_request_has_no_body_in_its_answer(edge: Running) -> None:
    answer = await edge.client.head("/slots", headers=bearer(OWNER))
    assert (answer.status_code, answer.content) == (200, b"")
    assert (await edge.client.head("/props")).status_code == 401


@pytest.mark.parametrize("path", ["/props", "/v1/slots", "/lanes/main/upstream/metrics"])
async def test_a_read_names_its_model_in_the_address(
    edge: Running, fake: upstreams.FakeServer, path: str
) -> None:
    answer = await edge.client.get(f"{path}?model=%71wen", headers=bearer(OWNER))
    assert answer.status_code == 200
    assert fake.seen[-1].path.endswith("?model=%71wen")
    answer = await edge.client.get(f"{path}?model=smol", headers=bearer(OWNER))
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "model_not_loaded")
    answer = await edge.client.get(f"{path}?model=qwen&model=smol", headers=bearer(OWNER))
    assert (answer.status_code, len(fake.seen)) == (400, 1)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/props"),
        ("POST", "/slots"),
        ("DELETE", "/v1/models"),
        ("POST", "/v1/models"),
        ("POST", "/models/load"),
        ("PUT", "/v1/chat/completions"),
        ("GET", "/v1/chat/completions"),
        ("POST", "/lanes/main/upstream/lora-adapters"),
        ("POST", "/lanes/main/upstream/props"),
        ("DELETE", "/lanes/main/upstream/models"),
    ],
)
async def test_writes_and_other_methods_do_not_pass(
    edge: Running, fake: upstreams.FakeServer, method: str, path: str
) -> None:
    answer = await edge.client.request(method, path, headers=bearer(OWNER))
    assert (answer.status_code, answer.json()["error"]["code"]) == (405, "method_not_allowed")
    assert fake.seen == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/health"),
        ("HEAD", "/metrics"),
        ("GET", "/lora-adapters"),
        ("GET", "/v1/models"),
        ("POST", "/tokenize"),
        ("POST", "/embedding"),
        ("POST", "/v1/chat/completions"),
    ],
)
async def test_an_engines_harmless_paths_pass_through(
    edge: Running, fake: upstreams.FakeServer, method: str, path: str
) -> None:
    answer = await edge.client.request(
        method,
        f"/lanes/main/upstream{path}",
        headers=bearer(MEMBER),
        json={} if method == "POST" else None,
    )
    assert answer.status_code == 200
    assert (fake.seen[0].method, fake.seen[0].path) == (method, path)


NOT_LISTED = [
    "/tools",
    "/cors-proxy",
    "/models/load",
    "/slots/0?action=save",
    "/v1/stream",
    "/",
    "//health",
    "/./health",
    "/../health",
    "/health/",
    "/health/..",
    "/health;x",
    "/health%2F",
    "/%68ealth",
    "/v1%2Fmodels",
    "/v1/%2e%2e/tools",
    "/v1\\models",
    "/HEALTH",
]


@pytest.mark.parametrize("path", NOT_LISTED)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_what_an_engine_does_not_list_is_refused_with_the_list(
    edge: Running, fake: upstreams.FakeServer, method: str, path: str
) -> None:
    status, text = await raw(edge, method, f"/lanes/main/upstream{path}", key_of(OWNER))
    assert status == 404
    assert '"route_not_found"' in text
    assert "GET/HEAD /health" in text
    assert fake.seen == []


async def test_strangers_are_told_of_the_booking_and_not_of_the_engine(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    mine = grant(OWNER, time.time() - 60, time.time() + 60)
    await edge.publish(lane(upstream=upstream_at(fake.url), grants=(mine,)))
    for path in ("/health", "/tools"):
        asked = f"/lanes/main/upstream{path}"
        answer = await edge.client.get(asked, headers=bearer(MEMBER))
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "gpu_reserved")
        assert (await edge.client.get(asked)).status_code == 401
    assert fake.seen == []
    answer = await edge.client.get("/lanes/main/upstream/health", headers=bearer(OWNER))
    assert answer.status_code == 200


async def test_an_engine_without_a_list_is_asked_for_nothing(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    await edge.publish(lane(upstream=upstream_at(fake.url, engine="another")))
    answer = await edge.client.get("/lanes/main/upstream/health", headers=bearer(OWNER))
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "route_not_found")
    assert fake.seen == []


@pytest.mark.parametrize(
    "query",
    [
        "api_key=x",
        "API-Key=x",
        "a=1&key=x",
        "token=x",
        "access_token=x",
        f"q={key_of(OWNER)}",
        f"{key_of(OWNER)}",
        "q=%73%73_token_of_1",
        "q=%2573s_token_of_1",
        "k=Bearer+ss_token_of_1",
        "%6bey=x",
    ],
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models", "/lanes/main/v1/messages"])
async def test_a_key_in_the_address_is_refused_even_beside_a_good_one(
    edge: Running,
    fake: upstreams.FakeServer,
    path: str,
    query: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = await edge.client.post(f"{path}?{query}", json={}, headers=bearer(OWNER))
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
    assert "revoked" in answer.json()["error"]["message"]
    assert fake.seen == []
    assert "token_of_1" not in caplog.text + answer.text


async def test_queries_that_hold_no_key_pass_untouched(
    edge: Running, fake: upstreams.FakeServer
) -> None:
    query = "beta=true&key=&tokens=1&monkey=2&class_sizes_of=3&x=%C3%A9%2f+%20&;a=b&&=&[]'\"|"
    status, _ = await raw(edge, "GET", f"/v1/props?{query}", key_of(OWNER))
    assert (status, fake.seen[-1].path) == (200, f"/props?{query}")


@pytest.mark.parametrize("query", ["a=\xe9", "a=\x7f"])
async def test_bytes_that_no_address_has_are_refused(edge: Running, query: str) -> None:
    status, _ = await raw(edge, "GET", f"/props?{query}", key_of(OWNER))
    assert status == 400


async def raw(edge: Running, method: str, target: str, key: str) -> tuple[int, str]:
    """Ask for exactly this target, which no client library would leave as it is."""
    reader, writer = await upstreams.connect(edge.url)
    head = f"{method} {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
    end = "Content-Length: 2\r\nConnection: close\r\n\r\n{}" if method == "POST" else ""
    writer.write((head + (end or "Connection: close\r\n\r\n")).encode("latin-1"))
    text = (await reader.read()).decode("latin-1")
    writer.close()
    await writer.wait_closed()
    return int(text.split(" ")[1]), text
