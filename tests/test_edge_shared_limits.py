"""Limits of requests and tokens a minute over several edges, also when Valkey is away."""

import asyncio
import time

import pytest

from tests.conftest import ValkeyServer
from tests.edge_company import edges_joined, unanswered
from tests.edge_harness import Running, edge_at, tokens, until

pytest_plugins = ["tests.edge_fixtures"]
pytestmark = pytest.mark.valkey


@pytest.mark.parametrize("name", ["requests_per_minute", "owner_requests_per_minute"])
async def test_requests_a_minute_hold_to_the_number_over_all_edges(
    edges: list[Running], name: str
) -> None:
    entry = next(iter(tokens(**{name: 60}).values()))
    begun = time.monotonic()
    answers = await asyncio.gather(
        *(each.edge.limits.admit(entry) for each in edges for _ in range(40))
    )
    refilled = int(time.monotonic() - begun) + 1  # one a second
    assert 60 <= answers.count(None) <= 60 + refilled
    assert {each.retry_after for each in answers if each is not None} == {1}


async def test_tokens_charged_at_one_edge_count_at_the_others(edges: list[Running]) -> None:
    entry = next(iter(tokens(owner_tokens_per_minute=100).values()))
    first, second, _ = (each.edge.limits for each in edges)
    assert await first.admit(entry) is None
    first.charge(entry, 250)
    async with asyncio.timeout(30):
        while (refusal := await second.admit(entry)) is None:
            await asyncio.sleep(0.002)
    assert refusal.retry_after in {90, 91}
    assert "100 tokens a minute" in refusal.words


@pytest.mark.usefixtures("patient")
async def test_going_alone_and_back_gives_nobody_a_second_burst(
    valkey_server: ValkeyServer,
) -> None:
    entry = next(iter(tokens(requests_per_minute=6).values()))
    async with edge_at(valkey_server.url, edge_id="a") as one:
        for _ in range(3):
            assert await one.edge.limits.admit(entry) is None
        async with edges_joined(valkey_server.url, one, "b") as other:
            for _ in range(3):
                assert await other.edge.limits.admit(entry) is None
            assert await one.edge.limits.admit(entry) is not None
        await until(lambda: one.edge.company.is_alone)
        assert await one.edge.limits.admit(entry) is not None


@pytest.mark.usefixtures("patient")
async def test_who_called_only_the_edge_that_left_is_known_to_the_one_that_stays(
    valkey_server: ValkeyServer,
) -> None:
    entry = next(iter(tokens(requests_per_minute=1).values()))
    async with edge_at(valkey_server.url, edge_id="a") as one:
        async with edges_joined(valkey_server.url, one, "b") as other:
            assert await other.edge.limits.admit(entry) is None
        await until(lambda: one.edge.company.is_alone and not one.edge.heritage.wanted.is_set())
        assert await one.edge.limits.admit(entry) is not None


@pytest.mark.usefixtures("patient")
async def test_a_restarted_edge_goes_on_from_what_its_callers_have_used(
    valkey_server: ValkeyServer,
) -> None:
    entry = next(iter(tokens(requests_per_minute=1).values()))
    async with edge_at(valkey_server.url) as before:
        assert await before.edge.limits.admit(entry) is None
    async with edge_at(valkey_server.url) as after:
        await until(lambda: not after.edge.heritage.wanted.is_set())
        assert await after.edge.limits.admit(entry) is not None


async def test_a_valkey_that_says_nothing_leaves_each_edge_its_share_of_a_limit(
    edges: list[Running], valkey_server: ValkeyServer
) -> None:
    entry = next(iter(tokens(requests_per_minute=12).values()))
    with unanswered(valkey_server):
        for each in edges:
            answers = [await each.edge.limits.admit(entry) for _ in range(9)]
            assert answers.count(None) == 4


async def test_after_valkey_was_emptied_what_each_edge_let_in_counts_once(
    edges: list[Running], valkey_server: ValkeyServer
) -> None:
    entry = next(iter(tokens(requests_per_minute=30).values()))
    valkey_server.stop()
    await until(lambda: all(each.edge.company.is_away for each in edges))
    for each in edges:
        for _ in range(5):
            assert await each.edge.limits.admit(entry) is None
    valkey_server.start()
    await until(lambda: not any(each.edge.company.is_away for each in edges))
    kept = [each.edge.limits._buckets["token:10:requests"] for each in edges]
    await until(lambda: not any(bucket.untold or bucket.guessed for bucket in kept))
    assert 10 < max(bucket.used for bucket in kept) <= 15  # the last one knows of all
