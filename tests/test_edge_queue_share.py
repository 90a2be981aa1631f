"""No one person fills the queue of a lane that is for all."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from gateway.edge.queue import Turn
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routing import Asked, Caller
from gateway.edge.table import digest_of, with_guests
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import MEMBER, OWNER, Running, key_of, lane
from tests.queue_world import PATIENT, World
from tests.waiting_cast import chat, four_places_at, gone, ready, waiting


def full(most: int) -> World:
    """Lane a has one slot, which is taken, and so many places."""
    world = World(queue_per_lane=most)
    world.hold(b="smol", slots=1)
    world.arrive(owner=OWNER)
    return world


def refusal_of(world: World, owner: int = MEMBER) -> EdgeRefusal | None:
    """What this person is told who comes now; None: to wait."""
    mine = Turn(Caller(digest_of(key_of(owner).encode())), Asked("qwen"), patience=PATIENT)
    found = world.gate.enter(mine)
    assert isinstance(found, EdgeRefusal)
    return world.gate.waiters.join(mine, found)


@pytest.mark.parametrize(("most", "share"), [(2, 1), (3, 1), (4, 2), (5, 2)])
async def test_one_person_gets_half_of_the_places_and_others_the_rest(
    most: int, share: int
) -> None:
    world = full(most)
    mine = [world.arrive() for _ in range(share + 1)]
    assert [each in world.waiting for each in mine] == [True] * share + [False]
    others = [world.arrive(owner=OWNER) for _ in range(share + 1)]
    assert [each in world.waiting for each in others] == [True] * share + [False]


async def test_a_queue_of_one_place_is_anybodys() -> None:
    world = full(1)
    assert world.arrive() in world.waiting


async def test_who_has_half_is_told_so_and_when_to_ask_again() -> None:
    world = full(4)
    world.arrive()
    world.arrive()
    found = refusal_of(world)
    assert found is not None
    assert (found.status, found.code, found.lane) == (429, "lane_busy", "a")
    assert found.retry_after is not None
    assert "2 requests of yours are waiting for lane 'a' already" in found.words
    assert "half" in found.words


async def test_a_place_that_is_given_up_may_be_taken_again() -> None:
    world = full(4)
    world.arrive()
    world.arrive()
    world.give_up(0)
    assert world.arrive() in world.waiting


async def test_two_tokens_of_one_person_share_the_half() -> None:
    world = full(4)
    table = world.gate.table_in_force()
    assert table is not None
    one = table.tokens[digest_of(key_of(MEMBER).encode())]
    tokens = {**table.tokens, digest_of(b"second"): replace(one, token_id=99)}
    world.gate.table = lambda: replace(table, tokens=tokens)
    world.arrive()
    world.arrive()
    second = Turn(Caller(digest_of(b"second")), Asked("qwen"), patience=PATIENT)
    found = world.gate.enter(second)
    assert isinstance(found, EdgeRefusal)
    assert world.gate.waiters.join(second, found) is not None


async def test_requests_for_another_lane_do_not_count() -> None:
    world = full(4)
    world.arrive("smol")
    for _ in range(2):
        assert world.arrive("smol") in world.waiting
    for _ in range(2):
        assert world.arrive("qwen") in world.waiting


async def test_the_owner_of_the_booking_may_fill_the_whole_queue() -> None:
    world = World(queue_per_lane=4)
    world.hold(b="smol", slots=1, booked="a")
    world.later(5)
    mine = [world.arrive(owner=OWNER) for _ in range(6)]
    assert [each in world.waiting for each in mine] == [False] + [True] * 4 + [False]


async def test_the_owner_of_a_slot_that_is_shared_is_one_of_several() -> None:
    world = World(queue_per_lane=4)
    world.hold(b="smol", slots=1, booked="a")
    world.later(5)
    table = world.gate.table_in_force()
    assert table is not None
    lanes = {
        slug: with_guests(each, {7: frozenset({MEMBER})}) for slug, each in table.lanes.items()
    }
    ours = replace(table, lanes=lanes)
    world.gate.table = lambda: ours
    mine = [world.arrive(owner=OWNER) for _ in range(4)]
    assert [each in world.waiting for each in mine] == [False, True, True, False]
    theirs = [world.arrive(owner=MEMBER) for _ in range(3)]
    assert [each in world.waiting for each in theirs] == [True, True, False]


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with four_places_at(valkey_server.url) as running:
        yield running


@pytest.mark.valkey
async def test_a_client_that_has_half_of_the_queue_gets_429_while_another_waits(
    edge: Running,
) -> None:
    async with upstreams.running(upstreams.answers_when_released) as fake:
        await edge.publish(ready(fake))
        requests = [chat(edge) for _ in range(3)]
        await waiting(edge, 2)
        refused = await chat(edge)
        assert refused.status_code == 429
        assert refused.json()["error"]["code"] == "lane_busy"
        assert "half" in refused.json()["error"]["message"]
        assert int(refused.headers["retry-after"]) >= 1
        requests.append(chat(edge, owner=OWNER))
        await waiting(edge, 3)
        fake.release.set()
        for request in requests:
            assert (await request).status_code == 200


@pytest.mark.valkey
async def test_a_load_is_waited_for_by_half_of_the_queue_of_one_person(edge: Running) -> None:
    await edge.publish(lane(upstream=None, phase="starting"))
    requests = [chat(edge, "wait=60") for _ in range(2)]
    await waiting(edge, 2)
    refused = await chat(edge, "wait=60")
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "lane_busy")
    for request in requests:
        await gone(request)
