"""Numbers of many requests, added up until somebody asks for them.

prometheus_client takes a lock for each number, and with several workers writes it to a file: many
times what it takes to add here. One thread adds and flushes.
"""

from bisect import bisect_left
from collections.abc import Sequence

from prometheus_client import Counter, Histogram

BOUNDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)  # seconds


class Sum:
    """What its counter has not been told yet."""

    __slots__ = ("_counter", "value")

    def __init__(self, counter: Counter) -> None:
        self.value = 0
        self._counter = counter

    def flush(self) -> None:
        """Tell the counter."""
        if self.value:
            self._counter.inc(self.value)
            self.value = 0


class TimesHistogram(Histogram):
    """A histogram that takes many times at once."""

    def observe_many(self, total: float, counts: Sequence[int]) -> None:
        """Times of this total, so many of them in each bucket of BOUNDS and above the last."""
        self._sum.inc(total)
        for bucket, count in zip(self._buckets, counts, strict=True):
            if count:
                bucket.inc(count)


class Times:
    """What its histogram has not been told yet."""

    __slots__ = ("_counts", "_histogram", "_total")

    def __init__(self, histogram: TimesHistogram) -> None:
        self._histogram = histogram
        self._total = 0.0
        self._counts = [0] * (len(BOUNDS) + 1)

    def add(self, seconds: float) -> None:
        """One more."""
        self._total += seconds
        self._counts[bisect_left(BOUNDS, seconds)] += 1

    def flush(self) -> None:
        """Tell the histogram."""
        if any(self._counts):
            self._histogram.observe_many(self._total, self._counts)
            self._total = 0.0
            self._counts = [0] * len(self._counts)
