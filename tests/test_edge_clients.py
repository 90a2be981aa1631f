"""Bad, slow and hostile clients over real sockets; each refusal in its dialect."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import (
    MEMBER,
    OWNER,
    STRANGER,
    Running,
    bearer,
    edge_at,
    key_of,
    lane,
    tokens,
    until,
)
from tests.edge_harness import upstream as upstream_at

pytestmark = pytest.mark.valkey
CHAT = "/v1/chat/completions"


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    settings: dict[str, Any] = {"max_body_bytes": 100_000, "body_seconds": 0.5}
    async with (
        edge_at(valkey_server.url, **settings) as running,
        upstreams.running(upstreams.llama) as fake,
    ):
        running.fake = fake  # type: ignore[attr-defined]
        await running.publish(lane(upstream=upstream_at(fake.url)))
        yield running
        await until(lambda: running.in_flight == 0)


def _fake(edge: Running) -> upstreams.FakeServer:
    fake = edge.fake  # type: ignore[attr-defined]
    assert isinstance(fake, upstreams.FakeServer)
    return fake


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"a": NaN}', "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 50_000, "not JSON"),
        (b"[1]", "not a JSON object"),
        (b'"qwen"', "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{"model": 1}', "'model' is not a string"),
        (b'{"model": ["qwen"]}', "'model' is not a string"),
    ],
)
async def test_a_body_that_cannot_be_used_is_a_400(edge: Running, body: bytes, words: str) -> None:
    answer = await edge.client.post(CHAT, content=body, headers=bearer(OWNER))
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "invalid_request_error")
    assert words in error["message"]
    assert _fake(edge).accepted == 0


async def test_a_body_without_a_model_gets_what_is_loaded(edge: Running) -> None:
    for body in ({}, {"model": None}, {"model": "auto"}, {"model": ""}):
        answer = await edge.client.post(CHAT, json=body, headers=bearer(OWNER))
        assert answer.headers["x-slotserve-preset"] == "qwen"


@pytest.mark.parametrize("is_chunked", [True, False])
async def test_a_huge_body_is_a_413_that_the_client_gets_to_read(
    edge: Running, is_chunked: bool
) -> None:
    async def flood() -> AsyncIterator[bytes]:
        for _ in range(1600):
            yield b"x" * 65_536

    headers = bearer(OWNER)
    if not is_chunked:
        headers["content-length"] = str(1600 * 65_536)
    answer = await edge.client.post(CHAT, content=flood(), headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")
    assert "100000 bytes" in answer.json()["error"]["message"]


@pytest.mark.parametrize("show", ["bearer", "x-api-key", "basic"])
async def test_a_key_may_be_shown_in_three_ways(edge: Running, show: str) -> None:
    key = key_of(OWNER)
    basic = base64.b64encode(f"anyone:{key}".encode()).decode()
    headers = {
        "bearer": {"authorization": f"bearer {key}"},
        "x-api-key": {"x-api-key": key},
        "basic": {"authorization": f"Basic {basic}"},
    }[show]
    assert (await edge.client.post(CHAT, json={}, headers=headers)).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer(STRANGER),
        {"authorization": "Bearer"},
        {"authorization": "Basic !!!"},
        {"authorization": key_of(OWNER)},
        {"cookie": f"key={key_of(OWNER)}"},
    ],
)
async def test_without_a_good_key_nobody_comes_in(edge: Running, headers: dict[str, str]) -> None:
    path = f"{CHAT}?api_key={key_of(OWNER)}&key={key_of(OWNER)}"
    answer = await edge.client.post(path, json={}, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
    assert key_of(OWNER) not in answer.text


async def test_a_wrong_key_is_refused_before_the_body_has_come(edge: Running) -> None:
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 90000\r\n\r\n"
    assert (await _raw(edge, head.encode())).startswith(b"HTTP/1.1 401")


async def test_revoking_a_token_reaches_the_edge(edge: Running) -> None:
    left = {digest: entry for digest, entry in tokens().items() if entry.owner_id != OWNER}
    await edge.publish(lane(upstream=upstream_at(_fake(edge).url)), entries=left)
    assert (await edge.chat(owner=OWNER)).status_code == 401
    assert (await edge.chat(owner=MEMBER)).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", CHAT, 405, "method_not_allowed"),
        ("OPTIONS", CHAT, 405, "method_not_allowed"),
        ("POST", "/v1/models", 405, "method_not_allowed"),
        ("POST", "/", 404, "route_not_found"),
        ("POST", "/v1/chat/completions/", 404, "route_not_found"),
        ("POST", "/v1/chat%2Fcompletions", 404, "route_not_found"),
        ("POST", "//v1/chat/completions", 404, "route_not_found"),
        ("POST", "/v1/../tools", 404, "route_not_found"),
        ("POST", "/tools", 404, "route_not_found"),
        ("POST", "/slots/0?action=erase", 404, "route_not_found"),
        ("POST", "/lanes/main/props", 405, "method_not_allowed"),
        ("POST", "/lanes/main/v1/../../tools", 404, "route_not_found"),
        ("POST", "/lanes/a%2Fb/v1/chat/completions", 404, "route_not_found"),
        ("GET", "/lanes/main/metrics", 404, "route_not_found"),
        ("POST", "/lanes/nowhere/v1/chat/completions", 404, "lane_not_found"),
    ],
)
async def test_what_is_not_a_route_does_not_pass(
    edge: Running, method: str, path: str, status: int, code: str
) -> None:
    head = "{} {} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n"
    request = head.format(method, path, key_of(OWNER)) + "content-length: 2\r\n\r\n{}"
    answer = await _raw(edge, request.encode())
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert f'"code":"{code}"'.encode() in answer
    assert _fake(edge).accepted == 0


@pytest.mark.parametrize(
    ("method", "path", "key", "header"),
    [
        ("DELETE", "/v1/models", key_of(OWNER), ("allow", "GET, HEAD")),
        ("GET", CHAT, key_of(OWNER), ("allow", "POST")),
        ("POST", CHAT, "ss_wrong", ("www-authenticate", 'Bearer realm="SlotServe"')),
    ],
)
async def test_a_refusal_says_in_its_head_what_would_be_right(
    edge: Running, method: str, path: str, key: str, header: tuple[str, str]
) -> None:
    headers = {"authorization": f"Bearer {key}"}
    answer = await edge.client.request(method, path, headers=headers)
    assert answer.headers[header[0]] == header[1]


async def test_the_lane_header_chooses_and_an_unknown_one_is_refused(edge: Running) -> None:
    for slug, status in (("main", 200), ("nowhere", 404), ("../x", 404), ("ma\xefn", 404)):
        headers = [(b"x-slotserve-lane", slug.encode("latin-1"))]
        headers += [(b"authorization", f"Bearer {key_of(OWNER)}".encode())]
        answer = await edge.client.post(CHAT, json={}, headers=headers)
        assert answer.status_code == status, slug


async def test_anthropics_clients_get_their_own_errors(edge: Running) -> None:
    answer = await edge.client.post("/v1/messages", json={}, headers=bearer(STRANGER))
    assert answer.json()["type"] == "error"
    assert answer.json()["error"]["type"] == "authentication_error"
    unknown = {"model": "nope"}
    answer = await edge.client.post("/v1/messages", json=unknown, headers=bearer(OWNER))
    assert answer.json()["error"]["type"] == "not_found_error"


HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key_of(OWNER)}\r\n"


@pytest.mark.parametrize(
    "rest",
    [
        "content-length: 2\r\ncontent-length: 3\r\n\r\n{} ",
        "content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "content-length: +2\r\n\r\n{}",
        "content-length: -2\r\n\r\n{}",
        "transfer-encoding: chunked, identity\r\n\r\n{}",
        "transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        "x-a : b\r\ncontent-length: 2\r\n\r\n{}",
        "x-a: b\r\n folded\r\ncontent-length: 2\r\n\r\n{}",
    ],
)
async def test_smuggled_lengths_never_reach_a_model_server_as_two_requests(
    edge: Running, rest: str
) -> None:
    answer = await _raw(edge, (HEAD + rest).encode())
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 200")), answer
    assert len(_fake(edge).seen) == answer.count(b"HTTP/1.1 200")
    for seen in _fake(edge).seen:
        assert [value for name, value in seen.headers if name == "content-length"] == ["2"]
        assert seen.header("transfer-encoding") is None


async def test_pipelined_requests_are_answered_in_their_order(edge: Running) -> None:
    one = (HEAD + "content-length: 2\r\n\r\n{}").encode()
    bad = (HEAD + "connection: close\r\ncontent-length: 2\r\n\r\n[]").encode()
    answer = await _raw(edge, one + one + bad)
    assert [answer.count(b"HTTP/1.1 200"), answer.count(b"HTTP/1.1 400")] == [2, 1]
    assert len(_fake(edge).seen) == 2


async def test_a_body_that_does_not_come_is_a_408(edge: Running) -> None:
    answer = await _raw(edge, (HEAD + 'content-length: 20\r\n\r\n{"mod').encode())
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"request_timeout" in answer


@pytest.mark.parametrize(
    "sent",
    ["", "content-length: 20\r\n", "content-length: 20\r\n\r\n", 'content-length: 9\r\n\r\n{"a'],
)
async def test_a_client_that_leaves_before_its_request_is_whole_leaves_nothing(
    edge: Running, sent: str
) -> None:
    reader, writer = await _connect(edge)
    writer.write((HEAD + sent).encode())
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await edge.chat()).status_code == 200
    assert len(_fake(edge).seen) == 1
    assert not await reader.read()


async def test_a_client_that_expects_a_word_first_gets_it(edge: Running) -> None:
    reader, writer = await _connect(edge)
    writer.write((HEAD + "expect: 100-continue\r\ncontent-length: 2\r\n\r\n").encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 100")
    writer.write(b"{}")
    assert b"HTTP/1.1 200" in await reader.readuntil(b"\r\n\r\n") + await reader.read(40)
    writer.close()
    await writer.wait_closed()
    assert _fake(edge).seen[0].header("expect") is None


async def _connect(edge: Running) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(edge.url.rpartition(":")[2]))


async def _raw(edge: Running, request: bytes) -> bytes:
    """Send these bytes; everything that comes until the edge closes or has no more to say."""
    reader, writer = await _connect(edge)
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(65_536), 30)
    with contextlib.suppress(TimeoutError):
        while piece := await asyncio.wait_for(reader.read(65_536), 1):
            answer += piece
    writer.close()
    await writer.wait_closed()
    return answer
