"""What ends the block of an exchange, and what it leaves of cancellations. Pure."""

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from gateway.edge.exchange import Exchange
from gateway.edge.refusals import refuse
from gateway.edge.routing import Route

_WHY = refuse("request_timeout", "it is enough.")
_TURNS = 3
Act = Callable[[Exchange, "asyncio.Task[str]"], object]


def _exchange() -> Exchange:
    return Exchange(cast(Route, None), lambda: True)


async def _block(exchange: Exchange) -> str:
    """Ends by a time limit of its own, if nothing else ends it."""
    with exchange:
        try:
            async with asyncio.timeout(0.05):
                await asyncio.sleep(60)
        except TimeoutError:
            return "its own time"
    task = asyncio.current_task()
    assert task is not None
    for _ in range(_TURNS):  # a cancellation left over would come here
        await asyncio.sleep(0)
    return f"stopped, {task.cancelling()} left"


def _later(act: Callable[[], object]) -> object:
    return asyncio.get_running_loop().call_soon(act)


@pytest.mark.parametrize(
    ("act", "ended"),
    [
        (lambda exchange, _: exchange.stop(_WHY), "stopped, 0 left"),
        (lambda _, task: task.cancel(), "cancelled"),
        (lambda exchange, task: (exchange.stop(_WHY), task.cancel()), "cancelled"),
        (lambda exchange, task: (task.cancel(), exchange.stop(_WHY)), "cancelled"),
        (lambda exchange, task: (exchange.stop(_WHY), _later(task.cancel)), "cancelled"),
        (lambda _, __: None, "its own time"),
    ],
)
async def test_a_stop_ends_the_block_and_leaves_other_cancellations(act: Act, ended: str) -> None:
    exchange = _exchange()
    task = asyncio.create_task(_block(exchange))
    await asyncio.sleep(0.01)
    act(exchange, task)
    try:
        found = await task
    except asyncio.CancelledError:
        found = "cancelled"
    assert found == ended


async def test_a_stop_before_the_block_ends_it() -> None:
    exchange = _exchange()
    exchange.stop(_WHY)
    assert await _block(exchange) == "stopped, 0 left"


async def test_a_block_that_rests_nowhere_is_not_cut_behind_its_end() -> None:
    exchange = _exchange()
    with exchange:
        exchange.stop(_WHY)
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    assert exchange.stopped_by is _WHY
