"""What became of the time that a booking held: used, loading, idle. Pure; docs/usage.md."""

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.intervals import Interval, seconds, union, within, without


@dataclass(frozen=True, slots=True)
class Shares:
    """Seconds of a booking's time. They add up to what was booked."""

    used: float = 0.0
    loading: float = 0.0
    idle: float = 0.0
    unmeasured: float = 0.0  # of a whole GPU: what runs there does not pass the gateway

    @property
    def booked(self) -> float:
        """All of it."""
        return self.used + self.loading + self.idle + self.unmeasured


def shares_of(
    held: Interval, *, busy: Iterable[Interval], ready: Iterable[Interval], is_measured: bool
) -> Shares:
    """Divide the time held: used while a request ran, loading while no server of the lane was
    ready, else idle."""
    whole = union([held])
    if not is_measured:
        return Shares(unmeasured=seconds(whole))
    used = within(busy, held)
    loading = without(without(whole, ready), used)
    idle = seconds(whole) - seconds(used) - seconds(loading)
    return Shares(used=seconds(used), loading=seconds(loading), idle=max(0.0, idle))
