"""What /metrics tells of the present moment: read when somebody asks."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge

from gateway.edge.table import Table

_Mode = Literal["livesum", "livemax", "livemin"]


@dataclass(frozen=True, slots=True)
class Reading:
    """One edge at one moment."""

    table: Table | None
    table_age: float | None  # seconds since it was confirmed
    in_flight: Mapping[str, int]  # by lane slug, as all that follow
    waiting: Mapping[str, int]
    excess: int  # from here on since the start
    usage_dropped: int
    usage_buffered: int = 0
    usage_spool_bytes: int = 0


class Gauges:
    """Set from a reading. With several workers each one's are summed, or the worst is told."""

    def __init__(self, registry: CollectorRegistry, *, forgets: bool) -> None:
        self._registry = registry
        self._forgets = forgets  # lanes that are gone; files of workers cannot
        self._in_flight = self._of_lanes("in_flight", "Requests at a model server", "livesum")
        self._waiting = self._of_lanes("waiting", "Requests in the lane's queue", "livesum")
        self._draining = self._of_lanes(
            "lane_draining", "1 while the lane lets requests finish and takes no more", "livemax"
        )
        self._age = self._one(
            "table_age_seconds",
            "Time since the route table was confirmed; +Inf without a table",
            "livemax",
        )
        self._version = self._one("table_version", "Of the route table in force", "livemin")
        self._buffered = self._one("usage_buffered", "Usage records in memory", "livesum")
        self._spooled = self._one("usage_spool_bytes", "Usage records in files", "livesum")
        self._dropped = self._total("usage_dropped", "Usage records that are lost")
        self._excess = self._total(
            "slots_excess", "Requests beyond a lane's slots, let in while Valkey was away"
        )
        self._counted: dict[Counter, int] = {}

    def refresh(self, reading: Reading) -> None:
        """Tell of this moment."""
        lanes = {} if reading.table is None else reading.table.lanes
        self._set(self._in_flight, dict.fromkeys(lanes, 0) | dict(reading.in_flight))
        self._set(self._waiting, dict.fromkeys(lanes, 0) | dict(reading.waiting))
        self._set(self._draining, {slug: int(lane.draining) for slug, lane in lanes.items()})
        self._age.set(math.inf if reading.table_age is None else reading.table_age)
        self._version.set(0 if reading.table is None else reading.table.version)
        self._buffered.set(reading.usage_buffered)
        self._spooled.set(reading.usage_spool_bytes)
        self._raise(self._dropped, reading.usage_dropped)
        self._raise(self._excess, reading.excess)

    def _set(self, gauge: Gauge, values: Mapping[str, int]) -> None:
        """These lanes' values; a lane that is gone goes, or is at 0."""
        told = {sample.labels["lane"] for family in gauge.collect() for sample in family.samples}
        for slug in told - values.keys():
            if self._forgets:
                gauge.remove(slug)
            else:
                gauge.labels(slug).set(0)
        for slug, value in values.items():
            gauge.labels(slug).set(value)

    def _raise(self, counter: Counter, total: int) -> None:
        counter.inc(total - self._counted.get(counter, 0))
        self._counted[counter] = total

    def _of_lanes(self, name: str, words: str, mode: _Mode) -> Gauge:
        return Gauge(
            f"slotserve_edge_{name}",
            words,
            ["lane"],
            registry=self._registry,
            multiprocess_mode=mode,
        )

    def _one(self, name: str, words: str, mode: _Mode) -> Gauge:
        return Gauge(
            f"slotserve_edge_{name}", words, registry=self._registry, multiprocess_mode=mode
        )

    def _total(self, name: str, words: str) -> Counter:
        return Counter(f"slotserve_edge_{name}", words, registry=self._registry)
