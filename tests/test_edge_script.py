"""The shared script does the same arithmetic as the pure buckets, on a real Valkey."""

import random
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import redis.asyncio as redis

from gateway.edge import buckets
from gateway.edge.buckets import Bucket, Limit
from gateway.edge.clock import EdgeClock
from gateway.edge.company import Company, Question
from gateway.edge.limits import Limits
from gateway.edge.roster import Roster
from gateway.edge.shared import Shared
from gateway.edge.slots import Slots
from tests.conftest import ValkeyServer
from wire.edges import RATE_PREFIX, SLOTS_PREFIX

pytestmark = pytest.mark.valkey
NOTHING = Question([], [0])
NO_RATES = Question([], [0, 0])


@dataclass
class Asker:
    """One edge that calls the script."""

    shared: Shared
    others: list[str] = field(default_factory=list)

    async def slots(self, held: int, wanted: int, slots: int) -> list[int]:
        """Ask about the lane "main"."""
        question = Question([SLOTS_PREFIX + "main"], [1, "main", held, wanted, slots])
        (lane,), _, _ = await self.shared._call(question, NO_RATES)
        return lane  # type: ignore[no-any-return]


@pytest.fixture
async def valkey(valkey_server: ValkeyServer) -> AsyncIterator["redis.Redis"]:
    async with redis.Redis.from_url(valkey_server.url) as client:
        yield client


def asker(valkey: "redis.Redis") -> Asker:
    clock, company = EdgeClock(), Company()
    roster = Roster(valkey, "x", clock, company)
    return Asker(Shared(valkey, roster, company, Slots(company), Limits(clock, company)))


async def test_no_more_is_granted_than_is_left(valkey: "redis.Redis") -> None:
    a, b = asker(valkey), asker(valkey)
    assert await a.slots(0, 3, 5) == [3, 0, 0]
    assert await b.slots(0, 4, 5) == [2, 0, 0]
    assert await a.slots(3, 1, 5) == [0, 0, 0]
    assert await b.slots(0, 0, 5) == [0, 0, 0]
    assert await a.slots(3, 9, 5) == [2, 0, 0]


async def test_only_what_grows_beyond_the_slots_is_new_excess(valkey: "redis.Redis") -> None:
    a, b = asker(valkey), asker(valkey)
    assert await a.slots(4, 0, 4) == [0, 0, 0]
    assert await b.slots(2, 0, 4) == [0, 2, 2]
    assert await b.slots(3, 0, 4) == [0, 3, 1]
    assert await a.slots(4, 0, 4) == [0, 3, 0]
    assert await b.slots(0, 1, 4) == [0, 0, 0]


async def test_counts_of_edges_that_nobody_knows_are_removed(valkey: "redis.Redis") -> None:
    await valkey.hset(SLOTS_PREFIX + "main", "ghost", "4")
    assert await asker(valkey).slots(0, 4, 4) == [4, 0, 0]
    assert await valkey.hexists(SLOTS_PREFIX + "main", "ghost") == 0


async def test_until_all_have_told_anew_each_keeps_to_its_share(valkey: "redis.Redis") -> None:
    a = asker(valkey)
    a.shared._roster._hear("ss:edges:news", "join somebody")
    assert await a.slots(0, 6, 6) == [3, 0, 0]


@pytest.mark.parametrize("seed", range(12))
async def test_buckets_in_valkey_are_those_of_the_pure_functions(
    valkey: "redis.Redis", seed: int
) -> None:
    choice, shared = random.Random(seed), asker(valkey).shared
    rates = [(choice.choice([1, 4, 30]), True), (choice.choice([20, 90]), False)]
    limits = [
        Limit(str(place), rate, Bucket(), is_counted)
        for place, (rate, is_counted) in enumerate(rates)
    ]
    late = 0.0  # seconds: a charge told late in one round is worth less in the rounds after it
    for _ in range(30):
        spent, asked = choice.choice([0, 0, 7]), choice.randint(0, 3)
        words: list[str | int | float] = [
            2,
            rates[0][0],
            "1",
            0,
            0,
            rates[1][0],
            "",
            spent,
            spent,
            asked,
        ]
        keys = [RATE_PREFIX + limit.name for limit in limits]
        words += [2, 1, 2] * asked
        begun = time.monotonic()
        _, used, requests = await shared._call(NOTHING, Question(keys, words))
        now = time.monotonic()
        late = max(late, now - begun)
        buckets.charge(limits[1], spent, now)
        expected = [buckets.admit(limits, now) for _ in range(asked)]
        assert [place for place, _ in requests] == [
            1 + limits.index(full.limit) if full else 0 for full in expected
        ]
        for total, limit in zip(used, limits, strict=True):
            near = late * limit.per_minute / 60 + 0.01
            assert float(total) == pytest.approx(limit.bucket.used, abs=near)
