"""Prometheus numbers of one edge process."""

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class _Now(Collector):
    """What is read at the moment of asking."""

    def __init__(
        self,
        in_flight: Callable[[], Mapping[str, int]],
        table_age: Callable[[], float | None],
        usage_dropped: Callable[[], int],
    ) -> None:
        self._in_flight = in_flight
        self._table_age = table_age
        self._usage_dropped = usage_dropped

    def collect(self) -> list[GaugeMetricFamily | CounterMetricFamily]:
        """The families, made anew."""
        flight = GaugeMetricFamily(
            "slotserve_edge_in_flight", "Requests at a model server", labels=["lane"]
        )
        for slug, count in self._in_flight().items():
            flight.add_metric([slug], count)
        age = GaugeMetricFamily(
            "slotserve_edge_table_age_seconds", "Time since the route table was confirmed"
        )
        seconds = self._table_age()
        if seconds is not None:
            age.add_metric([], seconds)
        dropped = CounterMetricFamily(
            "slotserve_edge_usage_dropped", "Usage records that could not be kept"
        )
        dropped.add_metric([], self._usage_dropped())
        return [flight, age, dropped]


class EdgeMetrics:
    """Counts requests by outcome; tells the rest when asked."""

    def __init__(
        self,
        in_flight: Callable[[], Mapping[str, int]],
        table_age: Callable[[], float | None],
        usage_dropped: Callable[[], int],
    ) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._requests = Counter(
            "slotserve_edge_requests",
            "Requests by route and outcome",
            ["route", "status", "code"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "slotserve_edge_request_seconds",
            "Time from arrival to the end of the answer",
            ["route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._registry.register(_Now(in_flight, table_age, usage_dropped))

    def count(self, route: str, status: int, code: str, seconds: float) -> None:
        """One request has ended."""
        self._requests.labels(route, str(status), code).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """The text format."""
        return generate_latest(self._registry)
