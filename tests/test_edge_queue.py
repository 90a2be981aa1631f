"""The queue: order of arrival, bounds, and nobody passes who could have been served."""

import asyncio
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.edge.admission import admit
from gateway.edge.exchange import Exchange
from gateway.edge.queue import NO_PATIENCE, Queue, Unsure
from gateway.edge.refusals import EdgeRefusal
from tests.edge_harness import MEMBER, OWNER
from tests.queue_world import SharedSlots, World, turn


def test_turns_stand_in_order_of_arrival_however_they_join() -> None:
    queue, turns = Queue(), [turn() for _ in range(5)]
    for each in (turns[3], turns[0], turns[4], turns[1], turns[2]):
        queue.join(each, "main")
    assert list(queue) == turns
    assert [queue.position(each) for each in turns] == [1, 2, 3, 4, 5]


def test_a_place_counts_at_one_lane_and_moves_with_its_turn() -> None:
    queue, first, second = Queue(), turn(), turn()
    queue.join(first, "a")
    queue.join(second, "a")
    queue.move(first, "b")
    assert (queue.waiting, queue.position(second)) == ({"a": 1, "b": 1}, 1)
    queue.leave(first)
    queue.leave(first)
    assert queue.waiting == {"a": 1}


def test_only_who_came_before_and_wants_this_lane_is_in_the_way() -> None:
    queue, first, second = Queue(), turn(), turn()
    queue.join(first, "a")
    first.wanted = ("a", "b")
    wanted = [queue.is_wanted(lane, second.number) for lane in ("a", "b", "c")]
    assert wanted == [True, True, False]
    assert not queue.is_wanted("a", first.number)


_STEP = st.one_of(
    st.tuples(st.just("arrive"), st.sampled_from(["qwen", "smol"]), st.sampled_from([1, 2])),
    st.tuples(st.just("arrive"), st.just("qwen"), st.just(2)),
    st.tuples(st.just("finish"), st.integers(0, 20)),
    st.tuples(st.just("give_up"), st.integers(0, 20)),
    st.tuples(st.just("later"), st.sampled_from([0.5, 4.0, 30.0])),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 5.0])),
    st.tuples(
        st.just("hold"),
        st.sampled_from(["qwen", "smol", ""]),
        st.sampled_from(["qwen", "smol", ""]),
        st.just(2),
        st.sampled_from(["", "", "a", "b"]),
    ),
)


@settings(max_examples=150)
@given(st.lists(_STEP, max_size=60))
def test_whatever_happens_slots_order_and_counts_hold(steps: list[tuple[Any, ...]]) -> None:
    async def run() -> None:
        world = World(queue_per_lane=4)
        is_due = False  # time has passed, and no timer has run that would have
        for name, *arguments in steps:
            if (name == "finish" and not world.inside) or (name == "give_up" and not world.waiting):
                continue
            getattr(world, name)(*arguments)
            is_due = name == "wait" or (is_due and name in ("finish", "give_up"))
            world.check(slots=2, is_quiet=not is_due)

    asyncio.run(run())


async def test_slots_that_edges_share_are_never_lost_nor_taken_twice() -> None:
    slots = SharedSlots(3)
    world = World(slots, queue_per_lane=200)
    world.hold(b="smol", slots=3)
    pump = asyncio.create_task(world.gate.waiters.run())
    served = []

    async def request(number: int) -> None:
        mine = turn()
        found = await admit(world.gate, mine)
        assert isinstance(found, Exchange)
        try:
            await asyncio.sleep(random.random() / 500)
        finally:
            world.gate.leave(found)
        served.append(number)

    tasks = [asyncio.create_task(request(number)) for number in range(60)]
    for task in random.sample(tasks, 15):
        await asyncio.sleep(0.001)
        task.cancel()
    async with asyncio.timeout(30):
        await asyncio.gather(*tasks, return_exceptions=True)
    assert (slots.free, slots.least, world.gate.in_flight, world.gate.waiting) == (3, 0, {}, {})
    assert len(served) >= 45
    pump.cancel()
    await asyncio.gather(pump, return_exceptions=True)


async def test_who_comes_back_stands_where_he_stood() -> None:
    world = World()
    world.hold(b="smol", slots=1)
    first, second, third = world.arrive(), world.arrive(), world.arrive()
    (_, exchange), *_ = world.inside
    world.gate.waiters.abandon(second)
    world.waiting.remove(second)
    refusal = world.gate.enter(second)
    assert isinstance(refusal, EdgeRefusal)
    assert world.gate.waiters.join(second, refusal) is None
    world.gate.leave(exchange)
    assert isinstance(second.outcome, Exchange)
    assert third.outcome is None
    assert first.number < second.number < third.number


async def test_a_slot_that_was_freed_while_the_answer_was_on_its_way_is_asked_for_again() -> None:
    slots = SharedSlots(0)
    slots.freed_unseen = 1
    world = World(slots)
    world.hold(b="smol")
    pump = asyncio.create_task(world.gate.waiters.run())
    async with asyncio.timeout(30):
        assert isinstance(await admit(world.gate, turn()), Exchange)
    pump.cancel()
    await asyncio.gather(pump, return_exceptions=True)


async def test_a_slot_that_nobody_wants_any_more_is_given_back() -> None:
    slots = SharedSlots(0)
    world = World(slots)
    world.hold(b="smol")
    waiting = asyncio.create_task(admit(world.gate, turn()))
    while world.gate.waiting != {"a": 1}:
        await asyncio.sleep(0.001)
    slots.free, slots.least = 1, 1
    pump = asyncio.create_task(world.gate.waiters.run())
    await asyncio.sleep(0)  # it asks
    waiting.cancel()
    async with asyncio.timeout(30):
        while slots.least or not slots.free:
            await asyncio.sleep(0.001)
    pump.cancel()
    await asyncio.gather(pump, waiting, return_exceptions=True)


async def test_nobody_asks_other_edges_for_a_slot_that_others_wait_for() -> None:
    slots = SharedSlots(0)
    world = World(slots)
    world.hold(b="smol")
    waiting = asyncio.create_task(admit(world.gate, turn()))
    async with asyncio.timeout(30):
        while world.gate.waiting != {"a": 1}:
            await asyncio.sleep(0.001)
    slots.free = 1
    assert isinstance(world.gate.enter(turn()), EdgeRefusal)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert isinstance(world.gate.enter(turn()), Unsure)


async def test_a_request_that_is_cancelled_as_it_is_let_in_leaves_no_count() -> None:
    world = World()
    world.hold(b="smol", slots=1)
    world.arrive()
    task = asyncio.create_task(admit(world.gate, turn()))
    await asyncio.sleep(0)
    assert world.gate.waiting == {"a": 1}
    world.finish(0)
    assert (world.gate.waiting, world.gate.in_flight) == ({}, {"a": 1})
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert world.gate.in_flight == {}


async def test_what_time_has_changed_is_seen_before_a_newcomer() -> None:
    world = World()
    world.hold(b="smol", slots=1, booked="a")
    world.arrive()
    waiting = world.arrive()
    world.wait(5)
    await admit(world.gate, turn(owner=OWNER, patience=NO_PATIENCE))
    assert isinstance(waiting.outcome, EdgeRefusal)
    assert waiting.outcome.code == "gpu_reserved"


async def test_who_waits_for_another_model_holds_nobody_up() -> None:
    world = World()
    world.hold(a="", b="smol", slots=1)
    world.arrive("qwen")
    assert [each for each in (world.arrive("smol"),) if each in world.waiting] == []
    assert (world.held("b"), world.gate.waiting) == (1, {"a": 1})


async def test_a_queue_has_a_size_and_says_so() -> None:
    world = World(queue_per_lane=2)
    world.hold(b="smol", slots=1)
    for owner in (OWNER, OWNER, MEMBER):
        world.arrive(owner=owner)
    refusal = world.gate.enter(mine := turn())
    assert isinstance(refusal, EdgeRefusal)
    found = world.gate.waiters.join(mine, refusal)
    assert found is not None
    assert (found.status, found.code, found.lane) == (429, "lane_busy", "a")
    assert "no more may" in found.words


async def test_no_queue_means_a_refusal_at_once() -> None:
    world = World(queue_per_lane=0)
    world.hold(b="smol", slots=1)
    assert world.arrive() not in world.refused
    assert world.arrive() in world.refused


async def test_a_booking_that_begins_refuses_who_waits_by_the_edges_own_clock() -> None:
    world = World()
    world.hold(b="smol", slots=1, booked="a")
    world.arrive()
    waiting = world.arrive()
    world.now += 5
    world.arrive()  # whoever comes next finds the question asked again
    assert (waiting in world.refused, world.gate.waiting) == (True, {})
