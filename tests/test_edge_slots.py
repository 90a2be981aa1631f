"""Slots of one edge: alone, in company, and without an answer. No Valkey."""

import asyncio
from collections.abc import Coroutine

import pytest

from gateway.edge.company import Company
from gateway.edge.slots import Slots
from wire.edges import SLOTS_PREFIX


def in_company(edges: int = 3, *, is_away: bool = False) -> Slots:
    """Slots of an edge that lives with others."""
    return Slots(Company(is_alone=False, edges=edges, is_away=is_away))


def at_once(work: Coroutine[object, object, bool]) -> bool:
    """What it answers without awaiting anything."""
    with pytest.raises(StopIteration) as ended:
        work.send(None)
    return bool(ended.value.value)


async def asked(slots: Slots, count: int, most: int = 4) -> list["asyncio.Task[bool]"]:
    """So many requests that wait for an answer about the lane "main"."""
    tasks = [asyncio.create_task(slots.take("main", most)) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


def test_alone_slots_are_given_out_until_there_are_none() -> None:
    slots = Slots()
    assert [slots.take_now("main", 2) for _ in range(3)] == [True, True, False]
    slots.give("main")
    assert [slots.take_now("main", 2) for _ in range(2)] == [True, False]


def test_lanes_have_slots_of_their_own() -> None:
    slots = Slots()
    assert [slots.take_now(lane, 1) for lane in ("a", "b", "a")] == [True, True, False]


def test_alone_nothing_is_awaited_and_nothing_asked() -> None:
    company = Company()
    slots = Slots(company)
    assert [at_once(slots.take("main", 1)) for _ in range(2)] == [True, False]
    slots.give("main")
    assert not company.wanted.is_set()


def test_in_company_the_others_must_be_asked() -> None:
    assert in_company().take_now("main", 5) is None


@pytest.mark.parametrize(("slots", "edges", "share"), [(6, 3, 2), (4, 3, 1), (1, 5, 1), (8, 1, 8)])
def test_without_an_answer_an_edge_gives_out_its_share(slots: int, edges: int, share: int) -> None:
    mine = in_company(edges, is_away=True)
    assert [at_once(mine.take("main", slots)) for _ in range(9)].count(True) == share


async def test_one_question_is_asked_for_all_who_wait_and_answered_in_order() -> None:
    slots = in_company()
    tasks = await asked(slots, 3)
    question = slots.question()
    assert question.keys == [SLOTS_PREFIX + "main"]
    assert question.arguments == [1, "main", 0, 3, 4]
    slots.answer([(2, 0, 0)])
    assert await asyncio.gather(*tasks) == [True, True, False]
    slots.tell_all()
    assert slots.question().arguments == [1, "main", 2, 0, 4]


async def test_what_is_asked_while_a_call_is_in_flight_goes_into_the_next() -> None:
    slots = in_company()
    first = await asked(slots, 1)
    slots.question()
    later = await asked(slots, 2)
    slots.answer([(1, 0, 0)])
    assert await asyncio.gather(*first) == [True]
    assert slots.question().arguments == [1, "main", 1, 2, 4]
    slots.answer([(2, 0, 0)])
    assert await asyncio.gather(*later) == [True, True]


async def test_who_leaves_before_the_answer_leaves_the_slot_to_others() -> None:
    slots = in_company()
    tasks = await asked(slots, 2)
    slots.question()
    tasks[0].cancel()
    await asyncio.gather(tasks[0], return_exceptions=True)
    slots.answer([(2, 0, 0)])
    assert await tasks[1]
    assert slots.question().arguments == [1, "main", 1, 0, 4]  # the other one is given back


async def test_who_is_cancelled_as_the_answer_comes_gives_the_slot_back() -> None:
    slots = in_company()
    (task,) = await asked(slots, 1)
    slots.question()
    slots.answer([(1, 0, 0)])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert slots.question().arguments == [1, "main", 0, 0, 4]


async def test_when_the_call_fails_those_in_it_and_those_after_it_decide_alone() -> None:
    slots = in_company(edges=2)
    first = await asked(slots, 2)
    slots.question()
    later = await asked(slots, 2)
    slots.give_up()
    assert await asyncio.gather(*first, *later) == [True, True, False, False]


async def test_who_was_refused_asks_again_when_a_slot_is_free_elsewhere() -> None:
    slots, woken = in_company(), list[str]()
    slots.on_free = woken.append
    await asked(slots, 1)
    slots.question()
    slots.answer([(0, 0, 0)])
    slots.freed("main")
    slots.tick()
    assert woken == ["main"]


async def test_a_word_that_was_lost_is_made_up_for_within_a_second() -> None:
    slots, woken = in_company(is_away=True), list[str]()
    slots.on_free = woken.append
    for _ in range(3):
        await slots.take("main", 3)
    slots.tick()
    assert woken == ["main"]


async def test_slots_given_back_while_alone_are_told_to_those_who_come() -> None:
    company = Company(is_alone=False, edges=2, is_away=False)
    slots = Slots(company)
    await asked(slots, 1)
    slots.question()
    slots.answer([(1, 0, 0)])
    company.is_alone, company.edges = True, 1
    slots.give("main")
    slots.tell_all()
    assert slots.question().arguments == [1, "main", 0, 0, 4]


async def test_excess_is_counted_as_it_grows_and_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    slots = in_company(is_away=True)
    await slots.take("main", 1)
    for said in [(0, 1, 1), (0, 2, 1), (0, 2, 0), (0, 0, 0), (0, 1, 1)]:
        slots.tell_all()
        slots.question()
        slots.answer([said])
    assert slots.excess == 3
    assert caplog.text.count("beyond its slots") == 2


async def test_an_answer_that_comes_when_the_edge_is_alone_gives_no_slot_twice() -> None:
    company = Company(is_alone=False, edges=2, is_away=False)
    slots = Slots(company)
    tasks = await asked(slots, 2)
    slots.question()
    company.is_alone = True  # the other one has left
    assert [slots.take_now("main", 4) for _ in range(3)] == [True, True, True]
    slots.answer([(2, 0, 0)])
    assert [await task for task in tasks] == [True, False]
    assert slots.held("main") == 4
    assert company.wanted.is_set()  # what was granted beyond is given back
