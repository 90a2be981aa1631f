"""The queue: order of arrival, bounds, and nobody passes who could have been served."""

import asyncio
import random
from typing import Any
from unittest.mock import Mock

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.edge.admission import admit
from gateway.edge.clock import EdgeClock
from gateway.edge.config import EdgeConfig
from gateway.edge.exchange import Exchange
from gateway.edge.gate import Gate
from gateway.edge.prefer import Patience
from gateway.edge.queue import NO_PATIENCE, Queue, Turn, Unsure
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routing import Asked, Caller
from gateway.edge.slots import Slots
from gateway.edge.table import digest_of
from tests.edge_harness import MEMBER, OWNER, grant, key_of, lane, table, upstream

PATIENT = Patience(60.0, 60.0)


def turn(model: str = "qwen", owner: int = MEMBER, patience: Patience = PATIENT) -> Turn:
    caller = Caller(digest_of(key_of(owner).encode()))
    return Turn(caller, Asked(model), patience=patience)


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


class World:
    """A gate with a clock of its own, and everybody who has come to it."""

    def __init__(self, slots: Slots | None = None, **config: Any) -> None:
        self.now = 1000.0
        clock = EdgeClock(monotonic=lambda: self.now, wall=lambda: self.now)
        self.slots = slots or Slots()
        self.gate = Gate(EdgeConfig("redis://nowhere", "e", **config), clock, Mock(), self.slots)
        self.inside: list[tuple[Turn, Exchange]] = []
        self.waiting: list[Turn] = []
        self.refused: list[Turn] = []
        self.come = self.done = 0
        self.hold()

    def hold(self, a: str = "qwen", b: str = "qwen", slots: int = 2, booked: str = "") -> None:
        """Lanes a and b run these presets; empty: they load qwen. A booking of one may begin."""
        lanes = []
        for slug, preset in (("a", a), ("b", b)):
            server = upstream(f"http://{slug}", preset, slots=slots) if preset else None
            grants = (grant(OWNER, self.now + 5, self.now + 10),) if booked == slug else ()
            phase = "ready" if preset else "starting"
            lanes.append(lane(slug, upstream=server, phase=phase, grants=grants))
        found = table(*lanes, confirmed_at=self.now)
        self.gate.table = lambda: found
        self.gate.review_all()
        self._collect()

    def arrive(self, model: str = "qwen", owner: int = MEMBER) -> Turn:
        """Somebody new."""
        mine = turn(model, owner)
        self.come += 1
        self.gate.waiters.catch_up()
        found = self.gate.enter(mine)
        if isinstance(found, Exchange):
            self._let_in(mine, found)
        elif isinstance(found, EdgeRefusal) and self.gate.waiters.join(mine, found) is None:
            self.waiting.append(mine)
        else:
            self.refused.append(mine)
        self._collect()
        return mine

    def finish(self, at: int) -> None:
        """Somebody inside is done."""
        _, exchange = self.inside.pop(at % len(self.inside))
        self.gate.leave(exchange)
        self.done += 1
        self._collect()

    def give_up(self, at: int) -> None:
        """Somebody who waits leaves."""
        mine = self.waiting.pop(at % len(self.waiting))
        self.gate.waiters.abandon(mine)
        self.refused.append(mine)

    def later(self, seconds: float) -> None:
        """Time passes; the edge's sweep walks."""
        self.now += seconds
        self.gate.sweep()
        self._collect()

    def wait(self, seconds: float) -> None:
        """Time passes, and nobody has looked yet."""
        self.now += seconds

    def _collect(self) -> None:
        for mine in [each for each in self.waiting if each.outcome is not None]:
            self.waiting.remove(mine)
            outcome = self.gate.waiters.take(mine)
            if isinstance(outcome, Exchange):
                self._let_in(mine, outcome)
            else:
                self.refused.append(mine)

    def _let_in(self, mine: Turn, exchange: Exchange) -> None:
        self.inside.append((mine, exchange))
        for other in self.waiting:
            if other.number < mine.number and other.outcome is None:
                assert exchange.route.lane.slug not in self.servable(other)

    def servable(self, mine: Turn) -> list[str]:
        """The lanes that would serve it, slots or not."""
        found = self.gate.routes(mine)
        return [] if isinstance(found, EdgeRefusal) else [each.lane.slug for each in found]

    def held(self, slug: str) -> int:
        return sum(exchange.route.lane.slug == slug for _, exchange in self.inside)

    def check(self, slots: int, *, is_quiet: bool) -> None:
        """Whatever has happened."""
        assert sum(self.gate.waiting.values()) == len(self.waiting)
        known = len(self.inside) + len(self.waiting) + len(self.refused)
        assert known + self.done == self.come
        assert sum(self.gate.in_flight.values()) == len(self.inside)
        for slug in ("a", "b"):
            assert self.held(slug) <= slots
            if is_quiet and any(slug in self.servable(each) for each in self.waiting):
                assert self.held(slug) == slots  # nobody waits for a slot that is free


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


@settings(max_examples=150, deadline=None)
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


class SharedSlots(Slots):
    """Slots that other edges share: each question takes a while, and some are lost to others."""

    def __init__(self, slots: int) -> None:
        super().__init__()
        self.free = slots
        self.least = slots

    def take_now(self, lane: str, slots: int) -> bool | None:
        return None

    async def take(self, lane: str, slots: int) -> bool:
        await asyncio.sleep(random.random() / 1000)
        if self.free == 0:
            return False
        self.free -= 1
        self.least = min(self.least, self.free)
        return True

    def give(self, lane: str) -> None:
        self.free += 1


async def test_slots_that_edges_share_are_never_lost_nor_taken_twice() -> None:
    slots = SharedSlots(3)
    world = World(slots, queue_per_lane=100)
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
    async with asyncio.timeout(10):
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


async def test_nobody_asks_other_edges_for_a_slot_that_others_wait_for() -> None:
    slots = SharedSlots(0)
    world = World(slots)
    world.hold(b="smol")
    waiting = asyncio.create_task(admit(world.gate, turn()))
    async with asyncio.timeout(2):
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
    for _ in range(3):
        world.arrive()
    refusal = world.gate.enter(mine := turn())
    assert isinstance(refusal, EdgeRefusal)
    found = world.gate.waiters.join(mine, refusal)
    assert found is not None
    assert (found.status, found.code, found.lane) == (429, "lane_busy", "a")


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
