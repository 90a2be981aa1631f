"""Bout after bout: break, wait until every lane is right again, go on."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.fault_parts.breaking import Breaker, Fault
from bench.fault_parts.right import Watcher
from bench.fault_parts.settings import DRAIN_SECONDS, STOP_SECONDS
from bench.fault_parts.waiting import Recovery, Wait
from bench.soak_parts.model_server import LOAD_SECONDS

SLACK_SECONDS = 10.0
MOST_IN_A_BOUT = 4
PAUSE_SECONDS = (0.0, 1.5)  # between faults of a bout
POLL_SECONDS = 0.2
FIRST_SECONDS = 120.0  # until all is well for the first time


@dataclass(slots=True)
class Campaign:
    """Who breaks and who watches."""

    breaker: Breaker
    watcher: Watcher
    patience: float  # so many times the promise is waited, to see whether it comes back at all

    def begin(self) -> None:
        """Wait until all is well for the first time."""
        self._settle([], time.time(), FIRST_SECONDS)

    def run(self, count: int) -> Iterator[Recovery]:
        """So many faults; each bout's recoveries as they are known."""
        while len(self.breaker.made) < count:
            yield from self._bout(count - len(self.breaker.made))

    def _bout(self, most: int) -> list[Recovery]:
        size = min(self.breaker.chance.randint(1, MOST_IN_A_BOUT), most)
        made = [self._fault() for _ in range(size)]
        found = self._settle(made, made[-1].end, SLACK_SECONDS)
        slowest = max(found, key=lambda one: one.seconds)
        print(
            f"{len(self.breaker.made):4} {', '.join(slowest.faults)}: right after "
            f"{slowest.seconds:.1f} s of {slowest.limit:.1f} s {slowest.wrong}",
            flush=True,
        )
        return found

    def _fault(self) -> Fault:
        fault = self.breaker.make()
        time.sleep(self.breaker.chance.uniform(*PAUSE_SECONDS))
        return fault

    def _settle(self, made: list[Fault], since: float, slack: float) -> list[Recovery]:
        """Wait for every lane, each with its own limit."""
        promise = DRAIN_SECONDS + STOP_SECONDS + LOAD_SECONDS + slack
        plain = [fault.name for fault in made]
        more = self.breaker.site.more_seconds
        waits = {lane: Wait(since, promise + more(lane, plain)) for lane in self.breaker.lanes}
        names = tuple(f"{fault.name} {fault.lane}".strip() for fault in made)
        found = []
        while waits:
            for lane, wait in list(waits.items()):
                look, at = self.watcher.look(lane), time.time()
                wait.take(look, at)
                seconds = wait.seconds(at)
                if not look.wrong or seconds > wait.limit * self.patience:
                    found.append(Recovery(lane.slug, names, seconds, wait.limit, look.wrong))
                    del waits[lane]
            time.sleep(POLL_SECONDS)
        return found
