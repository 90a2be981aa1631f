"""Edges know each other: who lives, who has left, and who pretends to be another."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis.asyncio as redis

from gateway.edge import edge as edge_module
from gateway.edge import roster
from gateway.edge.clock import EdgeClock
from gateway.edge.company import Company
from gateway.edge.roster import Roster
from tests.conftest import ValkeyServer
from tests.edge_harness import edge_at, lane, until, until_heard
from wire.edges import (
    EDGE_NEWS,
    EDGES,
    HEARTBEAT_SECONDS,
    LIVING,
    SILENT_AFTER_SECONDS,
    EdgeReport,
    LaneCount,
    decode_report,
)

pytestmark = pytest.mark.valkey


class Time:
    """A monotonic clock that a test moves; Valkey's own goes on by itself."""

    def __init__(self) -> None:
        self.seconds = time.monotonic()

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
async def valkey(valkey_server: ValkeyServer) -> AsyncIterator["redis.Redis"]:
    async with redis.Redis.from_url(valkey_server.url) as client:
        yield client


@pytest.fixture
def clock() -> Time:
    return Time()


class Member:
    """An edge that beats when it is told to."""

    def __init__(self, valkey: "redis.Redis", clock: Time, edge_id: str) -> None:
        self.company = Company()
        self.roster = Roster(valkey, edge_id, EdgeClock(monotonic=clock), self.company)
        self.edge_id = edge_id

    async def beat(self, in_flight: int = 0, **fields: Any) -> int:
        """Report once; how many edges it knows of then."""
        lanes = {"main": LaneCount(1, in_flight)}
        await self.roster.beat(EdgeReport(self.edge_id, int(time.time() * 1000), lanes, **fields))
        return self.company.edges


@pytest.fixture
def first(valkey: "redis.Redis", clock: Time) -> Member:
    return Member(valkey, clock, "a")


@pytest.fixture
def second(valkey: "redis.Redis", clock: Time) -> Member:
    return Member(valkey, clock, "b")


@pytest.fixture
def twin(valkey: "redis.Redis", clock: Time) -> Member:
    return Member(valkey, clock, "a")


async def field(valkey: "redis.Redis", name: str) -> EdgeReport | None:
    """What the hosts read."""
    payload = await valkey.hget(EDGES, name)
    return decode_report(name, payload) if isinstance(payload, bytes) else None


async def test_edges_learn_of_each_other_by_their_heartbeats(first: Member, second: Member) -> None:
    assert [await first.beat(), await second.beat(), await first.beat()] == [1, 2, 2]
    assert not first.company.is_alone


async def test_who_says_goodbye_is_gone(first: Member, second: Member, clock: Time) -> None:
    await second.beat()
    assert await first.beat() == 2
    listening = asyncio.create_task(first.roster.listen())
    await until_heard(first.roster._client, EDGE_NEWS)
    await second.beat(goodbye=True)
    await until(lambda: first.company.is_alone)
    assert await first.beat() == 1
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def standing(valkey: "redis.Redis") -> dict[str, EdgeReport]:
    """The reports of edges that have not said goodbye."""
    raw: dict[bytes, bytes] = await valkey.hgetall(EDGES)  # type: ignore[assignment]
    read = (decode_report(name.decode(), payload) for name, payload in raw.items())
    return {each.edge_id: each for each in read if each is not None and not each.goodbye}


async def beats(member: Member, clock: Time, seconds: float) -> int:
    """Beat each second for so long."""
    known = 0
    for _ in range(int(seconds)):
        clock.seconds += HEARTBEAT_SECONDS
        known = await member.beat()
    return known


async def test_who_is_silent_is_gone_after_five_seconds_and_not_before(
    first: Member, second: Member, clock: Time
) -> None:
    await second.beat()
    await first.beat()
    assert await beats(first, clock, SILENT_AFTER_SECONDS - 1) == 2
    assert await beats(first, clock, 1) == 1


async def test_an_emptied_valkey_makes_nobody_disappear(
    first: Member, second: Member, clock: Time, valkey: "redis.Redis"
) -> None:
    await second.beat()
    await first.beat()
    await valkey.flushall()
    assert await beats(first, clock, 2) == 2
    await second.beat()
    assert await beats(first, clock, SILENT_AFTER_SECONDS - 1) == 2


async def test_time_in_which_valkey_was_away_is_nobodys_silence(
    first: Member, second: Member, clock: Time
) -> None:
    await second.beat()
    await first.beat()
    clock.seconds += 600
    assert await first.beat() == 2


async def test_while_valkey_is_away_the_last_number_is_kept(valkey_server: ValkeyServer) -> None:
    url = valkey_server.url
    async with edge_at(url, edge_id="a") as one, edge_at(url, edge_id="b"):
        await until(lambda: one.edge.company.edges == 2)
        valkey_server.stop()
        await until(lambda: one.edge.reporter._is_silent)
        await until(lambda: one.edge.company.is_away)
        assert one.edge.company.edges == 2


async def test_an_edge_that_joins_is_known_before_it_serves(valkey_server: ValkeyServer) -> None:
    async with edge_at(valkey_server.url, edge_id="a") as one:
        assert one.edge.slots.take_now("main", 2) is True
        begun = time.monotonic()
        async with edge_at(valkey_server.url, edge_id="b") as other:
            assert time.monotonic() - begun >= HEARTBEAT_SECONDS
            assert one.edge.slots.take_now("main", 2) is None
            assert await other.edge.slots.take("main", 2)
            assert not await other.edge.slots.take("main", 2)
        await until(lambda: one.edge.company.is_alone)
        assert one.edge.slots.take_now("main", 2) is True


async def test_an_edge_that_is_alone_waits_for_no_other(
    valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_module, "HEARTBEAT_SECONDS", 600.0)
    async with edge_at(valkey_server.url):
        pass


async def test_two_processes_with_one_id_find_out(
    first: Member, twin: Member, caplog: pytest.LogCaptureFixture
) -> None:
    for member in (first, twin, first, twin, first):
        await member.beat()
    assert (first.roster.has_twin, twin.roster.has_twin) == (True, True)
    assert caplog.text.count("give each its own SLOTSERVE_EDGE_ID") == 2


async def test_while_two_have_one_id_the_hosts_see_the_counts_of_both(
    first: Member, twin: Member, valkey: "redis.Redis"
) -> None:
    for _ in range(3):
        await first.beat(in_flight=3)
        await twin.beat(in_flight=0)
    seen = await standing(valkey)
    assert sorted(each.lanes["main"].in_flight for each in seen.values()) == [0, 0, 3]


async def test_when_the_other_process_is_gone_the_id_is_ones_own_again(
    first: Member, twin: Member, clock: Time, valkey: "redis.Redis"
) -> None:
    for member in (first, twin, first, twin):
        await member.beat()
    await twin.beat(goodbye=True)
    await beats(first, clock, SILENT_AFTER_SECONDS + 2)
    assert not first.roster.has_twin
    assert set(await standing(valkey)) == {"a"}


async def test_a_goodbye_does_not_take_the_field_of_a_living_twin(
    first: Member, twin: Member, valkey: "redis.Redis"
) -> None:
    await first.beat()
    await twin.beat(in_flight=2)
    await first.beat(goodbye=True)
    report = await field(valkey, "a")
    assert report is not None
    assert (report.goodbye, report.lanes["main"].in_flight) == (False, 2)


async def test_a_predecessor_that_was_killed_is_no_twin(first: Member, twin: Member) -> None:
    await first.beat()
    for _ in range(3):
        await twin.beat()
    assert not twin.roster.has_twin


async def test_a_report_that_comes_late_does_not_replace_a_newer_one(
    first: Member, valkey: "redis.Redis"
) -> None:
    await first.beat(in_flight=1)
    await first.beat(in_flight=2)
    first.roster._number = 0
    await first.beat(in_flight=1)
    report = await field(valkey, "a")
    assert report is not None
    assert report.lanes["main"].in_flight == 2


async def test_a_report_of_an_older_release_is_read_and_is_nobodys_twin(
    first: Member, valkey: "redis.Redis"
) -> None:
    await first.beat()
    old = b'{"at": 1, "lanes": {"main": [4, 2]}, "goodbye": false}'
    await valkey.hset(EDGES, "a", old)
    read = decode_report("a", old)
    assert read is not None
    assert (read.incarnation, read.lanes) == ("", {"main": LaneCount(4, 2)})
    await first.beat()
    assert not first.roster.has_twin


async def test_what_nobody_writes_any_more_is_forgotten_after_a_day(
    first: Member, second: Member, clock: Time, valkey: "redis.Redis"
) -> None:
    day = roster._FORGET_SECONDS * 1000
    now = time.time() * 1000
    for name, age in (("old", day + 60_000), ("silent", day - 60_000)):
        payload = f'{{"at": {int(now - age)}, "lanes": {{}}, "goodbye": false}}'
        await valkey.hset(EDGES, name, payload)
    await valkey.zadd(LIVING, {"dead": now - day - 60_000})
    clock.seconds += 61
    await first.beat()
    assert set(await valkey.hkeys(EDGES)) == {b"silent", b"a"}
    assert await valkey.zscore(LIVING, "dead") is None


async def test_ready_says_no_while_another_has_the_same_id(valkey_server: ValkeyServer) -> None:
    url = valkey_server.url
    async with edge_at(url, edge_id="a") as one, edge_at(url, edge_id="a") as other:
        await one.publish(lane())
        await until(lambda: one.edge.roster.has_twin and other.edge.roster.has_twin)
        for each in (one, other):
            answer = await each.client.get("/ready")
            assert answer.status_code == 503
            assert "SLOTSERVE_EDGE_ID" in answer.json()["reasons"][0]
