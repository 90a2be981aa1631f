"""Which of its own paths each engine may be asked for, over real sockets."""

from collections.abc import AsyncIterator

import pytest

from gateway.edge.route import ModelIn
from gateway.edge.upstream_routes import ALLOWED, passage
from tests import upstreams, ws_upstream
from tests.conftest import ValkeyServer
from tests.edge_harness import MEMBER, OWNER, Running, bearer, edge_at, lane
from tests.edge_harness import upstream as upstream_at
from tests.ws_client import open_socket, refused

pytestmark = pytest.mark.valkey
UP = "/lanes/main/upstream"


@pytest.fixture
async def fake() -> AsyncIterator[upstreams.FakeServer]:
    async with upstreams.running(upstreams.echoes) as server:
        yield server


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url) as running:
        yield running


@pytest.mark.parametrize(
    ("engine", "method", "path"),
    [
        ("vllm", "GET", "/metrics"),
        ("vllm", "POST", "/pooling"),
        ("vllm", "POST", "/v2/rerank"),
        ("vllm", "POST", "/v1/messages"),
        ("sglang", "POST", "/generate"),
        ("sglang", "GET", "/get_model_info"),
        ("comfyui", "POST", "/prompt"),
        ("comfyui", "GET", "/api/queue"),
        ("comfyui", "POST", "/queue"),
        ("comfyui", "GET", "/history/0a1b-2c"),
        ("comfyui", "GET", "/object_info/KSampler"),
        ("comfyui", "GET", "/view?filename=a.png&type=output"),
        ("training", "POST", "/train/jobs"),
        ("training", "DELETE", "/train/jobs/7"),
        ("training", "GET", "/train"),
    ],
)
async def test_an_engine_s_own_paths_pass(
    edge: Running, fake: upstreams.FakeServer, engine: str, method: str, path: str
) -> None:
    await edge.publish(lane(upstream=upstream_at(fake.url, engine=engine)))
    body: dict[str, object] | None = {"prompt": {}} if method == "POST" else None
    answer = await edge.client.request(method, UP + path, headers=bearer(MEMBER), json=body)
    assert answer.status_code == 200
    assert (fake.seen[0].method, fake.seen[0].path) == (method, path)


@pytest.mark.parametrize(
    ("engine", "method", "path"),
    [
        ("vllm", "POST", "/sleep"),
        ("vllm", "POST", "/collective_rpc"),
        ("vllm", "POST", "/v1/load_lora_adapter"),
        ("vllm", "POST", "/invocations"),
        ("vllm", "POST", "/prompt"),
        ("vllm", "GET", "/props"),
        ("sglang", "GET", "/server_info"),
        ("sglang", "GET", "/get_server_info"),
        ("sglang", "POST", "/flush_cache"),
        ("sglang", "POST", "/update_weights_from_disk"),
        ("comfyui", "POST", "/free"),
        ("comfyui", "GET", "/userdata"),
        ("comfyui", "GET", "/history/"),
        ("comfyui", "GET", "/history/../queue"),
        ("comfyui", "GET", "/models/%2e%2e"),
        ("comfyui", "GET", "/models/a/b"),
        ("comfyui", "GET", "/"),
        ("training", "POST", "/trainer"),
        ("training", "POST", "/train/../x"),
        ("training", "POST", "/train//x"),
        ("training", "GET", "/train/"),
        ("command", "GET", "/health"),
        ("llama.cpp", "POST", "/train/jobs"),
    ],
)
async def test_what_it_does_not_list_does_not_reach_it(
    edge: Running, fake: upstreams.FakeServer, engine: str, method: str, path: str
) -> None:
    await edge.publish(lane(upstream=upstream_at(fake.url, engine=engine)))
    reader, writer = await upstreams.connect(edge.url)
    key = bearer(OWNER)["authorization"]
    head = f"{method} {UP}{path} HTTP/1.1\r\nHost: x\r\nAuthorization: {key}\r\n"
    writer.write(f"{head}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
    status = (await reader.read()).split(b" ")[1]
    writer.close()
    await writer.wait_closed()
    assert status in (b"404", b"405")
    assert fake.seen == []


async def test_the_refusal_lists_names_too(edge: Running, fake: upstreams.FakeServer) -> None:
    await edge.publish(lane(upstream=upstream_at(fake.url, engine="training")))
    answer = await edge.client.get(f"{UP}/nothing", headers=bearer(OWNER))
    assert "GET/HEAD/POST/DELETE /train/…" in answer.json()["error"]["message"]


async def test_comfyui_s_websocket_passes_and_no_other_engine_s(edge: Running) -> None:
    async with ws_upstream.running(ws_upstream.echoes) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url, engine="comfyui")))
        async with open_socket(edge, f"{UP}/ws?clientId=7") as client:
            await client.send("hello")
            assert await client.recv() == "hello"
        assert fake.requests[0].path == "/ws?clientId=7"
        await edge.publish(lane(upstream=upstream_at(fake.url, engine="vllm")))
        assert await refused(edge, f"{UP}/ws") == (404, "route_not_found")
        assert len(fake.requests) == 1


@pytest.mark.parametrize("engine", ALLOWED)
def test_a_path_of_one_engine_hides_no_other_engine_s(engine: str) -> None:
    for path, route in ALLOWED[engine].items():
        assert set(route.methods) <= set(passage(path).methods), path
        if "POST" in route.methods:
            assert passage(path).model_in is not ModelIn.QUERY, path
