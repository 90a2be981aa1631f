"""What an edge reports, and when it does not wait: the reporter alone, without Valkey."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.exceptions import ConnectionError as ValkeyError

from gateway.edge import reports
from gateway.edge.clock import EdgeClock
from gateway.edge.reports import Reporter
from gateway.edge.table import Table
from tests.edge_harness import lane, table, until
from wire.edges import HEARTBEAT_SECONDS, EdgeReport, LaneCount


class Wall:
    """Keeps what is written, as Valkey would; fails while it is away."""

    def __init__(self) -> None:
        self.reports: list[EdgeReport] = []
        self.is_away = False

    async def tell(self, report: EdgeReport) -> None:
        """Take a report."""
        if self.is_away:
            raise ValkeyError("away")
        self.reports.append(report)


class Facts:
    """What the edge knows; a test changes it."""

    def __init__(self) -> None:
        self.table: Table | None = None
        self.counts: dict[str, int] = {}
        self.waiting: dict[str, int] = {}


@pytest.fixture
def wall() -> Wall:
    return Wall()


@pytest.fixture
def facts() -> Facts:
    return Facts()


@pytest.fixture
async def reporter(wall: Wall, facts: Facts) -> AsyncIterator[Reporter]:
    """A reporter that has just reported."""
    made = Reporter(
        wall.tell, "edge-1", EdgeClock(), lambda: (facts.table, facts.counts), lambda: facts.waiting
    )
    task = asyncio.create_task(made.run())
    await until(lambda: wall.reports)
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_every_lane_is_reported_and_those_that_left_the_table_too(
    reporter: Reporter, wall: Wall, facts: Facts
) -> None:
    facts.table, facts.counts = table(lane("a", generation=4), lane("b")), {"a": 1, "gone": 2}
    facts.waiting = {"a": 5}
    reporter.urge()
    await until(lambda: len(wall.reports) > 1)
    assert wall.reports[-1].lanes == {
        "a": LaneCount(4, 1, waiting=5),
        "b": LaneCount(1, 0),
        "gone": LaneCount(0, 2),
    }


@pytest.mark.parametrize("is_draining", [True, False])
async def test_a_new_table_and_the_last_request_of_a_drain_wait_for_no_others(
    reporter: Reporter,
    wall: Wall,
    facts: Facts,
    monkeypatch: pytest.MonkeyPatch,
    is_draining: bool,
) -> None:
    monkeypatch.setattr(reports, "COALESCE_SECONDS", 60.0)
    facts.table = table(lane(draining=is_draining))
    reporter.urge()
    await until(lambda: len(wall.reports) == 2)
    reporter.changed("main")
    told = asyncio.create_task(until(lambda: len(wall.reports) == 3))
    await asyncio.wait({told}, timeout=None if is_draining else 0.2)
    assert len(wall.reports) == (3 if is_draining else 2)
    told.cancel()
    await asyncio.gather(told, return_exceptions=True)


async def test_a_valkey_that_was_away_is_told_at_the_next_heartbeat(
    reporter: Reporter, wall: Wall, caplog: pytest.LogCaptureFixture
) -> None:
    wall.is_away = True
    reporter.urge()
    await until(lambda: "cannot be told" in caplog.text)
    wall.is_away = False
    await until(lambda: len(wall.reports) > 1, 2 * HEARTBEAT_SECONDS)
    await until(lambda: "are told again" in caplog.text)
