"""Pages of other origins: let in by setting only, and then able to read what they are told."""

from collections.abc import AsyncIterator

import httpx
import pytest

from gateway.edge.cors import SETTING, Cors, read_origins
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import OWNER, STRANGER, Running, bearer, edge_at, lane, until
from tests.edge_harness import upstream as upstream_at
from wire.env import SettingError

PAGE = "https://chat.example.org"
EVIL = "https://evil.example"  # which the fake model server's streams allow
CHAT = "/v1/chat/completions"
ASK = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    origins = (PAGE, "http://localhost:3000")
    async with edge_at(valkey_server.url, cors_origins=origins) as running:
        await running.publish(lane())
        yield running
        await until(lambda: running.in_flight == 0)


def _cors(answer: httpx.Response) -> dict[str, str]:
    return {
        name.removeprefix("access-control-"): value
        for name, value in answer.headers.items()
        if name.startswith("access-control-")
    }


@pytest.mark.valkey
@pytest.mark.parametrize("path", [CHAT, "/v1/messages", "/v1/models/x", f"/lanes/main{CHAT}"])
async def test_a_page_may_ask_first(edge: Running, path: str) -> None:
    asked = "authorization, X-Stainless-Lang,x-stainless-os, cookie, x-stainless-a=b"
    headers = {"origin": PAGE} | ASK | {"access-control-request-headers": asked}
    answer = await edge.client.options(path, headers=headers)
    found = _cors(answer)
    assert (answer.status_code, answer.content) == (204, b"")
    assert found["allow-origin"] == PAGE
    assert answer.headers["vary"] == "Origin"
    assert found["allow-methods"] == ("GET, HEAD" if "models" in path else "POST")
    allowed = found["allow-headers"].split(", ")
    assert {"authorization", "x-api-key", "anthropic-version", "prefer"} <= set(allowed)
    assert [name for name in allowed if name.startswith("x-stainless")] == [
        "x-stainless-lang",
        "x-stainless-os",
    ]
    assert "cookie" not in allowed
    assert found["max-age"] == "3600"
    assert "allow-credentials" not in found


@pytest.mark.valkey
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": EVIL} | ASK,
        {"origin": PAGE.upper()} | ASK,
        {"origin": f"{PAGE}:8443"} | ASK,
        {"origin": "null"} | ASK,
        {"origin": PAGE},
        ASK,
    ],
)
async def test_whoever_else_asks_gets_no_word_of_it(edge: Running, headers: dict[str, str]) -> None:
    answer = await edge.client.options(CHAT, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (405, "method_not_allowed")
    if headers.get("origin") != PAGE:
        assert _cors(answer) == {}


@pytest.mark.valkey
async def test_the_gateways_own_pages_and_unknown_paths_are_not_opened(edge: Running) -> None:
    for path, status in (("/metrics", 405), ("/health", 405), ("/tools", 404)):
        answer = await edge.client.options(path, headers={"origin": PAGE} | ASK)
        assert answer.status_code == status
        assert "access-control-allow-methods" not in answer.headers


@pytest.mark.valkey
async def test_answers_and_refusals_can_be_read_by_the_page(edge: Running) -> None:
    async with upstreams.running(upstreams.llama) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        for owner, status in ((OWNER, 200), (STRANGER, 401)):
            for stream in (False, True):
                headers = bearer(owner) | {"origin": PAGE}
                body = {"stream": stream}
                answer = await edge.client.post(CHAT, json=body, headers=headers)
                found = _cors(answer)
                assert (answer.status_code, found["allow-origin"]) == (status, PAGE)
                exposed = set(found["expose-headers"].split(", "))
                assert {"x-request-id", "retry-after", "x-slotserve-booking-ends"} <= exposed
        assert fake.seen[0].header("origin") is None


@pytest.mark.valkey
async def test_the_model_servers_own_permission_never_passes(edge: Running) -> None:
    async with upstreams.running(upstreams.llama) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        headers = bearer(OWNER) | {"origin": EVIL}
        answer = await edge.client.post(CHAT, json={"stream": True}, headers=headers)
    assert answer.status_code == 200
    assert _cors(answer) == {}
    assert answer.headers["vary"] == "Origin"


@pytest.mark.valkey
async def test_without_the_setting_there_is_none_of_it(valkey_server: ValkeyServer) -> None:
    async with edge_at(valkey_server.url) as edge, upstreams.running(upstreams.llama) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        asked = await edge.client.options(CHAT, headers={"origin": PAGE} | ASK)
        assert (asked.status_code, _cors(asked)) == (405, {})
        headers = bearer(OWNER) | {"origin": EVIL}
        answer = await edge.client.post(CHAT, json={"stream": True}, headers=headers)
        assert (answer.status_code, _cors(answer)) == (200, {})
        assert "vary" not in answer.headers


def test_every_origin_is_a_star_without_an_echo() -> None:
    cors = Cors(("*",))
    for headers in ([], [(b"origin", b"https://any.example")]):
        answered = dict(cors.answer_headers(headers))
        assert answered[b"access-control-allow-origin"] == b"*"
        assert b"vary" not in answered
    asked = [(b"origin", b"null"), (b"access-control-request-method", b"POST")]
    assert cors.preflight_headers(asked, ("POST",)) is not None


@pytest.mark.parametrize(
    ("value", "origins"),
    [
        ("", ()),
        ("*", ("*",)),
        ("https://Chat.Example.org, http://[::1]:3000", (PAGE, "http://[::1]:3000")),
        ("http://localhost:443,chrome-extension://abc", None),
    ],
)
def test_origins_are_read_as_browsers_write_them(
    value: str, origins: tuple[str, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, value)
    assert read_origins() == (tuple(value.split(",")) if origins is None else origins)


@pytest.mark.parametrize(
    "value",
    [
        "chat.example.org",
        "https://chat.example.org/",
        "https://chat.example.org:443",
        "http://chat.example.org:80",
        "https://a b.example",
        "https://user@chat.example.org",
        "https://*.example.org",
        "null",
        "https://",
        f"*,{PAGE}",
    ],
)
def test_what_is_no_origin_stops_the_start(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, f"{PAGE},{value}" if "*" not in value else value)
    with pytest.raises(SettingError, match=SETTING):
        read_origins()
