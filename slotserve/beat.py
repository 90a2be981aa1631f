"""Celery's beat, which a clock that is set back does not silence."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from celery.beat import Scheduler

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
STEP_SECONDS = 0.5  # more than any clock is slowed down by between two looks


class SteadyScheduler(Scheduler):
    """Sends everything at once when the clock was set back.

    Celery reckons by wall time: it would send nothing until the clock shows again what it showed
    before, and for so long nobody would plan, publish or look.
    """

    monotonic: Callable[[], float] = staticmethod(time.monotonic)
    wall: Callable[[], float] = staticmethod(time.time)
    _ahead: float | None = None  # the wall clock of the monotonic one, at the last look

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """One look; seconds until the next."""
        ahead = self.wall() - self.monotonic()
        if self._ahead is not None and ahead < self._ahead - STEP_SECONDS:
            self._make_all_due()
        self._ahead = ahead
        wait: float = super().tick(*args, **kwargs)
        return wait

    def _make_all_due(self) -> None:
        for entry in self.schedule.values():
            entry.last_run_at = LONG_AGO
        self._heap = None  # of moments by the old clock
