"""Prometheus numbers of one edge, or of all workers of one parent.

Workers share PROMETHEUS_MULTIPROC_DIR: each keeps its numbers in files there that bear its edge's
id, so that a worker goes on where the one before it ended, and any of them can tell of all. What
has been counted since the last refresh is in no file: a worker that is killed loses that second.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, multiprocess, values

from gateway.edge.gauges import Gauges, Reading
from gateway.edge.tallies import BOUNDS, Sum, Times, TimesHistogram
from wire.usage import Usage

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
FOLDER_SETTING = "PROMETHEUS_MULTIPROC_DIR"
_STATUSES = frozenset({499, *(int(status) for status in HTTPStatus)})

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class _Tokens:
    """What is counted of one lane and preset."""

    prompt: Sum
    cached: Sum
    completion: Sum


@dataclass(frozen=True, slots=True)
class _OfLane:
    """What is counted of one lane, and of one preset there, looked up once."""

    first_byte: Times
    queue: Times
    bytes_in: Sum
    bytes_out: Sum
    failures: Sum
    aborted: Sum
    tokens: _Tokens | None  # None: of requests that the lane refused, which no preset saw


class EdgeMetrics:
    """Counts what ends; reads the rest when asked."""

    def __init__(self, edge_id: str, read: Callable[[], Reading]) -> None:
        self._read = read
        self._name = quote(edge_id, safe="").replace("_", "%5F")
        self.is_shared = bool(os.environ.get(FOLDER_SETTING))
        values.ValueClass = (
            values.MultiProcessValue(lambda: self._name)  # type: ignore[no-untyped-call]
            if self.is_shared
            else values.MutexValue
        )
        self._registry = CollectorRegistry(auto_describe=False)
        self._gauges = Gauges(self._registry, forgets=not self.is_shared)
        self._requests = self._counter(
            "requests", "Requests by route and outcome", "route", "status", "code"
        )
        self._seconds = self._histogram(
            "request_seconds", "Time from arrival to the end of the answer", "route"
        )
        self._first_byte = self._histogram(
            "first_byte_seconds", "Time from arrival to the answer's first byte", "lane"
        )
        self._queue = self._histogram(
            "queue_seconds", "Time in the queue, of requests that waited and were let in", "lane"
        )
        self._tokens = self._counter(
            "tokens", "Tokens of prompts (cached ones, too) and answers", "lane", "preset", "kind"
        )
        self._bytes = self._counter("bytes", "Of requests and answers", "lane", "direction")
        self._failures = self._counter("upstream_failures", "Answers of 502", "lane")
        self._aborted = self._counter("aborted", "Requests whose client left", "lane")
        self._info(edge_id)
        self._outcomes: dict[tuple[str, int, str], tuple[Sum, Times]] = {}
        self._lanes: dict[tuple[str, str], _OfLane] = {}
        self._sums: dict[Counter, Sum] = {}  # one for each series
        self._times: dict[TimesHistogram, Times] = {}

    def count(self, route: str, status: int, code: str, seconds: float) -> None:
        """One request has ended; `route` is one of the gateway's own, or "other"."""
        found = self._outcomes.get((route, status, code))
        if found is None:
            found = self._outcome(route, status, code)
        found[0].value += 1
        found[1].add(seconds)

    def served(self, usage: Usage) -> None:
        """What the record of a request at a lane says besides; the lane may have refused it."""
        if not usage.lane:
            return
        key = (usage.lane, usage.preset)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = self._of_lane(*key)
        lane.bytes_in.value += usage.bytes_in
        lane.bytes_out.value += usage.bytes_out
        if usage.code == "upstream_failed":
            lane.failures.value += 1
        if usage.is_aborted:
            lane.aborted.value += 1
        if lane.tokens is None:
            return
        if usage.first_byte_ms is not None and usage.status < HTTPStatus.BAD_REQUEST:
            lane.first_byte.add(usage.first_byte_ms / 1000)
        if usage.queue_ms:
            lane.queue.add(usage.queue_ms / 1000)
        _count_tokens(lane.tokens, usage)

    def refresh(self) -> None:
        """Let other workers know of what has been counted, and of this moment."""
        self._flush()
        self._gauges.refresh(self._read())

    async def told(self) -> bytes:
        """The text, put together in a thread: it takes long enough to hold up streams."""
        self.refresh()
        return await asyncio.to_thread(self._text)

    def text(self) -> bytes:
        """The text format: of all workers, when there are several."""
        self.refresh()
        return self._text()

    def _text(self) -> bytes:
        if not self.is_shared:
            return prometheus_client.generate_latest(self._registry)
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return prometheus_client.generate_latest(registry)

    def close(self) -> None:
        """This edge has no present moment any more; what it counted stays."""
        self._flush()
        if self.is_shared:
            multiprocess.mark_process_dead(self._name)  # type: ignore[no-untyped-call]

    def _flush(self) -> None:
        for amount in self._sums.values():
            amount.flush()
        for times in self._times.values():
            times.flush()

    def _outcome(self, route: str, status: int, code: str) -> tuple[Sum, Times]:
        """The numbers of an outcome. A status that a model server makes up is not let in."""
        shown = str(status) if status in _STATUSES else f"{status // 100}xx"
        requests = self._sum(self._requests, route, shown, code)
        found = (requests, self._times_of(self._seconds, route))
        if status in _STATUSES:
            self._outcomes[route, status, code] = found
        return found

    def _of_lane(self, lane: str, preset: str) -> _OfLane:
        return _OfLane(
            first_byte=self._times_of(self._first_byte, lane),
            queue=self._times_of(self._queue, lane),
            bytes_in=self._sum(self._bytes, lane, "in"),
            bytes_out=self._sum(self._bytes, lane, "out"),
            failures=self._sum(self._failures, lane),
            aborted=self._sum(self._aborted, lane),
            tokens=self._tokens_of(lane, preset) if preset else None,
        )

    def _tokens_of(self, lane: str, preset: str) -> _Tokens:
        return _Tokens(
            prompt=self._sum(self._tokens, lane, preset, "prompt"),
            cached=self._sum(self._tokens, lane, preset, "cached"),
            completion=self._sum(self._tokens, lane, preset, "completion"),
        )

    def _sum(self, counter: Counter, *labels: str) -> Sum:
        series = counter.labels(*labels)
        return self._sums.setdefault(series, Sum(series))

    def _times_of(self, histogram: TimesHistogram, lane_or_route: str) -> Times:
        series = histogram.labels(lane_or_route)
        return self._times.setdefault(series, Times(series))

    def _counter(self, name: str, words: str, *labels: str) -> Counter:
        return Counter(f"slotserve_edge_{name}", words, labels, registry=self._registry)

    def _histogram(self, name: str, words: str, *labels: str) -> TimesHistogram:
        return TimesHistogram(
            f"slotserve_edge_{name}", words, labels, buckets=BOUNDS, registry=self._registry
        )

    def _info(self, edge_id: str) -> None:
        info = Gauge(
            "slotserve_edge_info",
            "1 for each edge that runs",
            ["edge_id"],
            registry=self._registry,
            multiprocess_mode="livemax",
        )
        info.labels(edge_id).set(1)


def _count_tokens(tokens: _Tokens, usage: Usage) -> None:
    if usage.prompt_tokens:
        tokens.prompt.value += usage.prompt_tokens
    if usage.cached_tokens:
        tokens.cached.value += usage.cached_tokens
    if usage.completion_tokens:
        tokens.completion.value += usage.completion_tokens
