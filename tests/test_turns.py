"""Steps taken in turn: never two at once, and of those that wait one is enough for all."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

import pytest

from gateway.turns import Turns
from tests.fleet import until


class Step:
    """A step that lasts until it is let go."""

    def __init__(self) -> None:
        self.begun = 0
        self.at_once = 0
        self.most_at_once = 0
        self.go = Event()

    def __call__(self) -> None:
        self.begun += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        assert self.go.wait(60)
        self.at_once -= 1


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as made:
        yield made


def begin(pool: ThreadPoolExecutor, turns: Turns, step: Step) -> Future[bool]:
    first = pool.submit(turns.take)
    until(lambda: step.begun == 1)
    return first


def test_one_runs_one_waits_for_it_and_the_rest_return_at_once(pool: ThreadPoolExecutor) -> None:
    step = Step()
    turns = Turns(step)
    first = begin(pool, turns, step)
    others = [pool.submit(turns.take) for _ in range(5)]
    until(lambda: sum(other.done() for other in others) == 4)
    step.go.set()
    assert first.result(60)
    assert sorted(other.result(60) for other in others) == [False] * 4 + [True]
    assert (step.begun, step.most_at_once) == (2, 1)


def test_what_happens_while_a_step_runs_is_seen_by_a_later_one(pool: ThreadPoolExecutor) -> None:
    step = Step()
    turns = Turns(step)
    begin(pool, turns, step)
    second = pool.submit(turns.take)
    step.go.set()
    assert second.result(60)
    assert step.begun == 2


def test_a_step_that_fails_lets_the_next_one_in() -> None:
    def fail() -> None:
        raise RuntimeError("broken")

    turns = Turns(fail)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="broken"):
            turns.take()
