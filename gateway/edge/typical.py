"""How long answers usually take here: three quarters of them are no longer."""

import math

Key = tuple[str, str, str]  # lane, preset, route
KNOWN_AFTER = 5  # answers; before that nothing is said
_QUANTILE = 0.75
_STEP = 0.2  # of the logarithm: one answer moves the estimate by 5 to 16 %
_MOST_KEYS = 4096
_SHORTEST_SECONDS = 0.001


class TypicalTimes:
    """A running quantile for each lane, preset and route of this process, in constant time.

    It starts from the median of the first answers. Each further one pushes it up or down by a
    share of itself, up three times as far as down, so it rests where one in four is longer.
    """

    def __init__(self) -> None:
        self._first: dict[Key, list[float]] = {}
        self._logs: dict[Key, float] = {}

    def add(self, key: Key, seconds: float) -> None:
        """One whole answer took this long."""
        value = math.log(max(seconds, _SHORTEST_SECONDS))
        known = self._logs.get(key)
        if known is not None:
            self._logs[key] = known + _STEP * (_QUANTILE - (value < known))
        else:
            self._begin(key, value)

    def seconds(self, key: Key) -> float | None:
        """The estimate; None before enough answers are known."""
        known = self._logs.get(key)
        return None if known is None else math.exp(known)

    def _begin(self, key: Key, value: float) -> None:
        first = self._first.setdefault(key, [])
        first.append(value)
        if len(first) == KNOWN_AFTER:
            self._logs[key] = sorted(first)[KNOWN_AFTER // 2]
            del self._first[key]
        for known in (self._first, self._logs):
            if len(known) > _MOST_KEYS:  # the oldest goes: presets come and go for months
                del known[next(iter(known))]
