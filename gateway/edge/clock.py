"""The edge's time: Valkey's TIME plus the table's offset, carried by the monotonic clock."""

import time
from collections.abc import Callable
from dataclasses import dataclass

MOST_SKEW_SECONDS = 2.0
_SLOW_ANSWER_SECONDS = 0.5  # such an answer tells between which times it is, and ends no doubt


@dataclass(frozen=True, slots=True)
class Moment:
    """When somebody was asked for the time, by the two clocks of this host."""

    monotonic: float
    wall: float


class EdgeClock:
    """Seconds since 1970 by the database's clock, without asking it."""

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._wall_ahead = wall() - monotonic()  # when Valkey was asked for the time last
        self._ahead = self._wall_ahead  # Valkey's clock minus the monotonic one
        self._offset = 0.0
        self._is_synced = False

    def monotonic(self) -> float:
        """The clock that only this process knows, for measuring how long things take."""
        return self._monotonic()

    def moment(self) -> Moment:
        """This host's clocks now."""
        return Moment(self._monotonic(), self._wall())

    def now(self) -> float:
        """The database's time."""
        return self._monotonic() + self._ahead + self._offset

    def valkey_now(self) -> float:
        """Valkey's time, which reports carry."""
        return self._monotonic() + self._ahead

    @property
    def is_in_doubt(self) -> bool:
        """Whether this host's clock was set, or stood still, since Valkey was asked for the time:
        Valkey and the database may run beside us, and then no other clock tells."""
        return self._is_far(self._wall() - self._monotonic())

    def sync(self, valkey_time: float, asked: Moment) -> None:
        """Take Valkey's TIME, which was asked for at that moment and has just been answered."""
        answered_at = self._monotonic()
        least, most = valkey_time - answered_at, valkey_time - asked.monotonic
        wall_ahead = asked.wall - asked.monotonic
        was_set = self._is_far(wall_ahead)
        is_slow = most - least > _SLOW_ANSWER_SECONDS
        if is_slow and self._is_synced and not was_set:
            self._ahead = min(max(self._ahead, least), most)
        else:
            self._ahead = (least + most) / 2
        self._is_synced = True
        if not (is_slow and was_set):
            self._wall_ahead = wall_ahead

    def _is_far(self, wall_ahead: float) -> bool:
        return abs(wall_ahead - self._wall_ahead) > MOST_SKEW_SECONDS

    def take_offset(self, offset: float) -> None:
        """The database's clock minus Valkey's, as the newest head says."""
        self._offset = offset

    def skew(self) -> float:
        """The largest difference between this host's, Valkey's and the database's clock."""
        wall = self._wall()
        clocks = (wall, self.valkey_now(), self.now())
        return max(clocks) - min(clocks)
