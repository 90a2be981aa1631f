"""The beat goes on when the clock is set, back or forth."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from celery import Celery

from slotserve.beat import SteadyScheduler


class World:
    """A beat with one task every 3 s, a clock that can be set, and what was sent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at, self.ahead = 0.0, 1_000_000.0
        self.sent: list[float] = []
        app = Celery(set_as_current=False, broker="memory://")
        monkeypatch.setattr(app, "now", self.now)
        app.conf.beat_schedule = {"look": {"task": "look", "schedule": 3.0}}
        self.beat = SteadyScheduler(app, schedule={})
        self.beat.wall, self.beat.monotonic = (lambda: self.at + self.ahead), (lambda: self.at)
        monkeypatch.setattr(self.beat, "apply_entry", self.send)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.at + self.ahead, UTC)

    def send(self, *_: Any, **__: Any) -> None:
        self.sent.append(self.at)

    def run(self, seconds: float) -> list[float]:
        """When something was sent in the next so many seconds."""
        until, before = self.at + seconds, len(self.sent)
        while self.at < until:
            self.at += max(self.beat.tick(), 0.01)
        return self.sent[before:]


@pytest.mark.parametrize("step", [-86_400.0, -30.0, -1.0, 0.0, 1.0, 30.0])
def test_a_step_of_the_clock_keeps_nothing_from_being_sent_in_time(
    step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(monkeypatch)
    world.run(10.0)
    world.ahead += step
    times = [world.sent[-1], *world.run(30.0)]
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert len(waits) >= 9
    assert max(waits) < 2 * 3.0
