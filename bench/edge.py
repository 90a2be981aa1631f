"""How fast the edge is: ratios to a bare forwarder, in one run on pinned cores.

`python -m bench.edge [--litellm PROGRAM] [--quick]`. The gateway under test has one core; upstream,
Valkey and the load generator share another. Fails when a promise of docs/measurements.md is broken.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.edge_speed.load import Plan
from bench.edge_speed.servers import Servers, begin, load
from bench.edge_speed.table import TOKEN

MEBI = 2**20
_PART = 20_000  # requests between two visits of the worker


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the report."""

    name: str
    edge: str
    control: str
    ratio: float
    promise: str
    is_kept: bool


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--litellm", type=Path, help="LiteLLM's program, in its own environment")
    parser.add_argument("--quick", action="store_true", help="shorter, for a first look")
    parser.add_argument("--only", default="", help="measures whose name contains this")
    options = parser.parse_args()
    with Servers() as servers:
        bench = Bench(servers, is_quick=options.quick)
        results = bench.run(options.only, options.litellm)
    width = max(len(result.name) for result in results)
    for one in results:
        mark = "kept" if one.is_kept else "BROKEN"
        print(
            f"{one.name:{width}}  edge {one.edge:>12}  control {one.control:>12}  "
            f"ratio {one.ratio:6.2f}  promise {one.promise}: {mark}"
        )
    return 0 if all(result.is_kept for result in results) else 1


class Bench:
    """All measures against the same three processes."""

    def __init__(self, servers: Servers, *, is_quick: bool) -> None:
        self._servers = servers
        self._seconds = 2.0 if is_quick else 5.0
        self._rounds = 3 if is_quick else 7
        self._many = 20_000 if is_quick else 200_000
        self.control = servers.control()
        self.edge = servers.edge()
        self._wait_for_table()

    def run(self, only: str, litellm: Path | None) -> list[Result]:
        """Those measures whose name contains `only`."""
        measures: list[Callable[[], list[Result]]] = [
            self.requests,
            self.first_token,
            self.streams,
            self.bodies,
            self.memory,
        ]
        chosen = [one for one in measures if only in one.__name__]
        results = [result for one in chosen for result in one()]
        if litellm is not None:
            results += self.litellm(litellm)
        return results

    def requests(self) -> list[Result]:
        """Requests a second, 16 connections, whole answers."""
        edge, control = self._pairs("per_second", seconds=self._seconds)
        return [_result("requests/s, 16 connections", edge, control, "/s", least=0.60)]

    def first_token(self) -> list[Result]:
        """Time to first token, 64 streams at once."""
        edge, control = self._pairs(
            "first_byte", connections=64, is_stream=True, seconds=self._seconds
        )
        return [_result("TTFT p50, 64 streams", edge, control, " ms", most=1.5, scale=1000)]

    def streams(self) -> list[Result]:
        """Chunks a second of 256 streams."""
        edge, control = self._pairs(
            "events_per_second", connections=256, is_stream=True, seconds=self._seconds
        )
        return [_result("chunks/s, 256 streams", edge, control, "/s", least=0.85)]

    def bodies(self) -> list[Result]:
        """Time of one request with a large body, and how long streams beside it stand still."""
        found = []
        for size, most, count in ((1, 1.3, 40), (32, 2.0, 8)):
            plan = {"connections": 1, "requests": count, "body_bytes": size * MEBI}
            edge, control = self._pairs("duration", **plan)
            name = f"{size} MB body"
            found.append(_result(name, edge, control, " ms", most=most, scale=1000))
            found.append(self._stalls(f"{name}: others stall", size * MEBI))
        return found

    def _stalls(self, name: str, body_bytes: int) -> Result:
        """The longest pause in eight streams, less the 10 ms between two chunks."""
        pauses: dict[int, list[float]] = {self.edge: [], self.control: []}
        for _ in range(self._rounds):
            for port, found in pauses.items():
                streams = begin(self._plan(port, connections=8, is_stream=True, seconds=3.0))
                time.sleep(0.8)
                self._load(port, connections=1, seconds=2.0, body_bytes=body_bytes)
                found.append(streams()["longest_gap"] * 1000 - 10)
        edge, control = (statistics.median(found) for found in pauses.values())
        texts = (f"{edge:.1f} ms", f"{control:.1f} ms")
        return Result(name, *texts, edge / max(control, 0.1), "20 ms at most", edge <= 20)

    def memory(self) -> list[Result]:
        """Resident memory with 256 streams, and what many requests leave behind."""
        process = self._servers.edge_process
        assert process is not None
        self._load(self.edge, connections=256, is_stream=True, seconds=self._seconds)
        full = process.memory_info().rss / 1e6
        self._load(self.edge, requests=_PART)
        before = process.memory_info().rss / 1e6
        for _ in range(self._many // _PART):
            self._load(self.edge, requests=_PART)
        growth = process.memory_info().rss / 1e6 - before
        return [
            Result("memory, 256 streams", f"{full:.0f} MB", "", full / 130, "130 MB", full <= 130),
            Result(
                f"growth over {self._many} requests",
                f"{growth:.1f} MB",
                "",
                growth / before,
                "none (under 2 MB)",
                growth < 2,
            ),
        ]

    def litellm(self, program: Path) -> list[Result]:
        """Requests a second against LiteLLM's proxy."""
        port = self._servers.litellm(program)
        self._load(port, seconds=3.0)
        theirs = [self._load(port, seconds=self._seconds)["per_second"] for _ in range(3)]
        ours = [self._load(self.edge, seconds=self._seconds)["per_second"] for _ in range(3)]
        return [_result("requests/s against LiteLLM", ours, theirs, "/s", least=25)]

    def _pairs(self, figure: str, **plan: float) -> tuple[list[float], list[float]]:
        """The figure by turns from edge and control; a first turn of each is not counted."""
        for port in (self.edge, self.control):
            self._load(port, **{**plan, "seconds": 1.0})
        edge, control = [], []
        for _ in range(self._rounds):
            edge.append(self._load(self.edge, **plan)[figure])
            control.append(self._load(self.control, **plan)[figure])
        return edge, control

    def _load(self, port: int, **plan: float) -> dict[str, float]:
        self._servers.take_usage()
        return load(self._plan(port, **plan))

    def _plan(self, port: int, **plan: float) -> Plan:
        return Plan(port, TOKEN, **plan)  # type: ignore[arg-type]

    def _wait_for_table(self) -> None:
        for _ in range(100):
            try:
                self._load(self.edge, requests=1, connections=1)
                return
            except RuntimeError:
                time.sleep(0.1)
        raise TimeoutError("the edge has no table")


def _result(  # noqa: PLR0913 - one line of a report
    name: str,
    edge: list[float],
    control: list[float],
    unit: str,
    *,
    least: float = 0.0,
    most: float = 0.0,
    scale: float = 1.0,
) -> Result:
    """The median of the pairs' ratios, so that a slow moment of the machine counts for both."""
    ratio = statistics.median(one / other for one, other in zip(edge, control, strict=True))
    ours, theirs = (f"{statistics.median(found) * scale:.1f}{unit}" for found in (edge, control))
    promise = f"{least} at least" if least else f"{most} at most"
    return Result(name, ours, theirs, ratio, promise, ratio >= least if least else ratio <= most)


if __name__ == "__main__":
    sys.exit(main())
