"""One place of a worker, with children that are no processes."""

import asyncio

import pytest

from gateway.edge import workers
from gateway.edge.line import STOP
from gateway.edge.workers import Place
from tests.edge_harness import until


class _Child:
    """Serves and ends when the test says so."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.told: list[bytes] = []
        self.is_serving = asyncio.Event()
        self.is_over = asyncio.Event()

    async def serves(self) -> bool:
        await self.is_serving.wait()
        return True

    async def ended(self) -> int:
        await self.is_over.wait()
        return 0

    def tell(self, word: bytes) -> None:
        self.told.append(word)
        self.is_over.set()


async def test_a_worker_that_dies_while_it_is_renewed_leaves_none_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "FIRST_WAIT", 0.0)
    made: list[_Child] = []

    def spawn(number: int) -> _Child:
        made.append(_Child(number))
        return made[-1]

    first = _Child(1)
    place = Place(first, spawn)  # type: ignore[arg-type]
    keeping = asyncio.create_task(place.keep())
    renewing = asyncio.create_task(place.renew(4))
    await until(lambda: len(made) == 1)
    first.is_over.set()
    await until(lambda: len(made) == 2)
    successor, again = made
    successor.is_serving.set()
    assert await renewing
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    held: object = place.child
    assert held is successor
    assert again.told == [STOP]
