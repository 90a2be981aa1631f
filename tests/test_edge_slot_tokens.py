"""A slot's token at a real edge: nothing before the start, all in it, nothing after the end."""

import time

import httpx
import pytest

from gateway.edge.table import SlotToken, digest_of
from tests import upstreams
from tests.edge_harness import OWNER, Running, grant, lane, until
from tests.edge_harness import upstream as upstream_at

pytest_plugins = ["tests.edge_fixtures"]
pytestmark = pytest.mark.valkey
TEXT = "ss_token_of_a_slot"


async def publish(edge: Running, url: str, start: float, end: float) -> None:
    """The slot's lane and another, with the slot's token."""
    token = SlotToken(7, OWNER, ("inference",), ("main",), expires_at=end, starts_at=start)
    main = lane(upstream=upstream_at(url), grants=(grant(OWNER, start, end),))
    other = lane("other", upstream=upstream_at(url))
    await edge.publish(main, other, entries={digest_of(TEXT.encode()): token})


async def chat(edge: Running, path: str = "/v1/chat/completions") -> httpx.Response:
    """A request with the slot's token."""
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    return await edge.client.post(path, json=body, headers={"authorization": f"Bearer {TEXT}"})


async def test_it_works_in_its_slot_on_its_lane_alone(edge: Running) -> None:
    now = time.time()
    async with upstreams.running(upstreams.llama) as fake:
        await publish(edge, fake.url, now + 60, now + 120)
        early = await chat(edge)
        assert (early.status_code, early.json()["error"]["code"]) == (401, "invalid_api_key")
        assert "begins at" in early.text

        await publish(edge, fake.url, now - 60, now + 60)
        assert (await chat(edge)).status_code == 200
        other = await chat(edge, "/lanes/other/v1/chat/completions")
        assert (other.status_code, other.json()["error"]["code"]) == (404, "lane_not_found")


async def test_at_its_end_the_edge_refuses_it_by_itself(edge: Running) -> None:
    async with upstreams.running(upstreams.llama) as fake:
        end = time.time() + 1.0
        await publish(edge, fake.url, end - 60, end)
        assert (await chat(edge)).status_code == 200
        await until(lambda: time.time() > end + 0.5)
        late = await chat(edge)
    assert (late.status_code, "expired" in late.text) == (401, True)


async def test_a_slot_released_ends_it_with_the_next_table(edge: Running) -> None:
    now = time.time()
    async with upstreams.running(upstreams.llama) as fake:
        await publish(edge, fake.url, now - 60, now + 60)
        assert (await chat(edge)).status_code == 200
        await edge.publish(lane(upstream=upstream_at(fake.url)), entries={})
        assert (await chat(edge)).status_code == 401
