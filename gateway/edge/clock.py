"""The edge's time: Valkey's TIME plus the table's offset, carried by the monotonic clock."""

import time
from collections.abc import Callable

MOST_SKEW_SECONDS = 2.0
_SLOW_ANSWER_SECONDS = 0.5  # such an answer tells the time too vaguely to move the clock


class EdgeClock:
    """Seconds since 1970 by the database's clock, without asking it."""

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._ahead = wall() - monotonic()  # Valkey's clock minus the monotonic one
        self._offset = 0.0
        self.is_synced = False

    def monotonic(self) -> float:
        """The clock that only this process knows, for measuring how long things take."""
        return self._monotonic()

    def now(self) -> float:
        """The database's time."""
        return self._monotonic() + self._ahead + self._offset

    def valkey_now(self) -> float:
        """Valkey's time, which reports carry."""
        return self._monotonic() + self._ahead

    def sync(self, valkey_time: float, asked_at: float, answered_at: float) -> None:
        """Take Valkey's TIME, asked and answered at these monotonic times."""
        if self.is_synced and answered_at - asked_at > _SLOW_ANSWER_SECONDS:
            return
        self._ahead = valkey_time - (asked_at + answered_at) / 2
        self.is_synced = True

    def take_offset(self, offset: float) -> None:
        """The database's clock minus Valkey's, as the newest head says."""
        self._offset = offset

    def skew(self) -> float:
        """The largest difference between this host's, Valkey's and the database's clock."""
        wall = self._wall()
        clocks = (wall, self.valkey_now(), self.now())
        return max(clocks) - min(clocks)
