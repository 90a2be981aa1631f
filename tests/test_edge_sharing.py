"""Slots that are shared: whom the gateway admits, where their requests go, and until when."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from gateway.edge.endings import Running as RunningRequest
from gateway.edge.endings import ending
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routing import Asked, Route, choose
from gateway.edge.table import (
    Grant,
    LaneRoute,
    decode_lane,
    decode_shares,
    encode_part,
    with_guests,
)
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import (
    MEMBER,
    OWNER,
    STRANGER,
    Running,
    edge_at,
    grant,
    lane,
    shared,
    table,
    until,
)
from tests.edge_harness import upstream as upstream_at
from tests.test_routing_table import LATER, NOW, ask, caller, code

MINE = grant(OWNER, 0, LATER)
OURS = shared(MINE, MEMBER)
SMOL: dict[str, Any] = {"upstream": upstream_at(preset="smol"), "target": "smol"}


def place(answer: Route | EdgeRefusal) -> str:
    return answer.lane.slug if isinstance(answer, Route) else answer.code


def test_a_guest_is_served_like_the_owner_and_others_are_not() -> None:
    here = lane(grants=(OURS,))
    answers = [code(ask(here, owner=who)) for who in (OWNER, MEMBER)]
    assert answers == ["served", "served"]
    assert code(ask(lane(grants=(MINE,)), owner=MEMBER)) == "gpu_reserved"
    other = shared(MINE, STRANGER)
    assert code(ask(lane(grants=(other,)), owner=MEMBER)) == "gpu_reserved"


@pytest.mark.parametrize(
    ("now", "expected"),
    [(99.9, "served"), (100.0, "served"), (199.9, "served"), (200.0, "gpu_reserved")],
)
def test_a_guest_is_one_until_the_slot_ends_and_no_longer(now: float, expected: str) -> None:
    slots = (shared(grant(OWNER, 100, 200), MEMBER), grant(OWNER, 200, 300, booking_id=8))
    found = table(lane(grants=slots), confirmed_at=now)
    assert code(choose(found, caller(MEMBER), Asked(), now)) == expected


def test_a_whole_gpu_is_as_closed_to_guests_as_to_its_owner() -> None:
    whole = shared(grant(OWNER, 0, LATER, preset=None), MEMBER)
    assert code(ask(lane(grants=(whole,)), owner=MEMBER)) == "gpu_exclusive"


def test_a_guest_who_names_no_lane_is_led_to_the_shared_slot() -> None:
    lanes = (lane("free"), lane("ours", grants=(OURS,)))
    assert place(ask(*lanes, owner=MEMBER)) == "ours"
    assert place(ask(*lanes, owner=MEMBER, model="qwen")) == "ours"


def test_what_others_share_keeps_nobody_from_a_free_lane_with_another_model() -> None:
    lanes = (lane("free", **SMOL), lane("ours", grants=(OURS,)))
    assert place(ask(*lanes, owner=MEMBER, model="smol")) == "free"
    assert place(ask(*lanes, owner=OWNER, model="smol")) == "model_not_loaded"  # the owner's choice


def test_ones_own_slot_comes_before_one_that_is_shared() -> None:
    own = grant(MEMBER, 0, LATER, booking_id=8)
    lanes = (lane("ours", grants=(OURS,)), lane("own", grants=(own,)))
    assert place(ask(*lanes, owner=MEMBER)) == "own"
    assert place(ask(*lanes, owner=MEMBER, lane="ours")) == "ours"


def test_guests_are_admitted_by_a_stale_table_as_owners_are() -> None:
    found = table(lane(grants=(OURS,)), confirmed_at=NOW - 1000)
    assert code(choose(found, caller(MEMBER), Asked(), NOW)) == "served"
    alone = table(lane(grants=(MINE,)), confirmed_at=NOW - 1000)
    assert code(choose(alone, caller(MEMBER), Asked(), NOW)) == "gateway_stale"


def test_requests_of_guests_run_on_until_they_are_none() -> None:
    here, gone = lane(grants=(OURS,)), lane(grants=(MINE,))
    assert here.upstream is not None
    request = RunningRequest(MEMBER, here.upstream)
    assert ending(here, request, NOW, 30.0) is None
    found = ending(gone, request, NOW, 30.0)
    assert found is not None
    assert found.at <= NOW


def test_a_transfer_lets_requests_of_the_old_owner_finish_within_the_drain() -> None:
    given = lane(grants=(grant(MEMBER, NOW - 1, LATER),))  # hers from the moment of the transfer
    assert given.upstream is not None
    found = ending(given, RunningRequest(OWNER, given.upstream), NOW, 30.0)
    assert found is not None
    assert found.at == NOW + 29


def test_an_edge_of_the_release_before_reads_lanes_as_ever_and_admits_owners_alone() -> None:
    encoded = encode_part(lane(grants=(MINE,)))
    assert set(json.loads(encoded)["grants"][0]) == {
        "booking_id",
        "owner_id",
        "start",
        "end",
        "preset",
    }
    assert type(decode_lane(encoded).grants[0]) is Grant


def test_shares_are_put_into_the_grants_they_are_of() -> None:
    two = (MINE, grant(MEMBER, LATER, LATER + 1, booking_id=8))
    found = with_guests(lane(grants=two), decode_shares(b'{"7": [2], "9": [3]}'))
    assert [one.people for one in found.grants] == [{OWNER, MEMBER}, {MEMBER}]
    untouched = lane(grants=two)
    assert with_guests(untouched, {9: frozenset({3})}) is untouched


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url, drain_seconds=0.3) as running:
        yield running
        await until(lambda: running.in_flight == 0)


def _lane(fake: upstreams.FakeServer, *grants: Grant) -> LaneRoute:
    return lane(upstream=upstream_at(fake.url), grants=grants)


def _slot(start: float = -60, end: float = 3600, owner: int = OWNER) -> Grant:
    now = time.time()
    return grant(owner, now + start, now + end)


def _code(answer: httpx.Response) -> str:
    return answer.json()["error"]["code"] if answer.status_code != 200 else "served"


@pytest.mark.valkey
async def test_over_real_sockets_a_guest_is_in_and_out_with_the_next_table(edge: Running) -> None:
    async with upstreams.running(upstreams.llama) as fake:
        here = _lane(fake, _slot())
        seen = []
        for shares in (None, {7: [MEMBER]}, {}):
            await edge.publish(here, shares=shares)
            seen.append(_code(await edge.chat(owner=MEMBER)))
        assert seen == ["gpu_reserved", "served", "gpu_reserved"]
        assert _code(await edge.chat(owner=OWNER)) == "served"


@pytest.mark.valkey
async def test_shares_that_are_not_what_they_should_be_change_nothing(edge: Running) -> None:
    async with upstreams.running(upstreams.llama) as fake:
        await edge.publish(_lane(fake, _slot()), shares={7: [MEMBER]})
        before = edge.version
        await edge.publisher.publish(_lane(fake, _slot()), shares={"x": ["y"]})
        await edge.edge.holder.refresh()
        assert edge.version == before
        assert _code(await edge.chat(owner=MEMBER)) == "served"


@pytest.mark.valkey
async def test_a_guest_before_the_slot_is_anybody_and_after_it_nobody(edge: Running) -> None:
    async with upstreams.running(upstreams.llama) as fake:
        await edge.publish(_lane(fake, _slot(3600, 7200)), shares={7: [MEMBER]})
        assert _code(await edge.chat(owner=MEMBER)) == "served"  # the lane is free
        await edge.publish(_lane(fake, _slot(-120, -60)), shares={7: [MEMBER]})
        assert _code(await edge.chat(owner=MEMBER)) == "served"
        now = time.time()
        others = (grant(OWNER, now - 120, now - 60), grant(OWNER, now - 60, now + 60, booking_id=8))
        await edge.publish(_lane(fake, *others), shares={7: [MEMBER]})
        assert _code(await edge.chat(owner=MEMBER)) == "gpu_reserved"


@pytest.mark.valkey
async def test_what_a_removed_guest_has_running_ends_and_the_owners_does_not(edge: Running) -> None:
    async with upstreams.running(upstreams.streams_for_ever) as fake:
        here = _lane(fake, _slot())
        await edge.publish(here, shares={7: [MEMBER]})
        requests = [
            asyncio.create_task(edge.chat(owner=who, stream=True)) for who in (MEMBER, OWNER)
        ]
        await until(lambda: len(fake.seen) == 2)
        await edge.publish(here, shares={})
        last = (await requests[0]).text.strip().split("\n\n")[-1]
        assert "model_switching" in last
        assert not requests[1].done()
        requests[1].cancel()
        await asyncio.gather(requests[1], return_exceptions=True)


@pytest.mark.valkey
async def test_a_slot_changes_hands_with_the_next_table_and_drains(edge: Running) -> None:
    async with upstreams.running(upstreams.streams_for_ever) as fake:
        await edge.publish(_lane(fake, _slot()))
        his = asyncio.create_task(edge.chat(owner=OWNER, stream=True))
        await until(lambda: len(fake.seen) == 1)
        given_at = time.time()
        await edge.publish(_lane(fake, _slot(0, 3600, MEMBER)))
        assert _code(await edge.chat(owner=OWNER)) == "gpu_reserved"
        hers = asyncio.create_task(edge.chat(owner=MEMBER, stream=True))
        assert "model_switching" in (await his).text
        assert time.time() - given_at > 0.25  # within the drain it could have finished
        await until(lambda: len(fake.seen) == 2)
        assert not hers.done()
        hers.cancel()
        await asyncio.gather(hers, return_exceptions=True)
