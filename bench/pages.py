"""How long the pages take the server: `python -m bench.pages [rounds] [page ...]`.

The made-up company with 50 lanes, 200 members and 20,000 bookings. Each page of the product is
asked in this process, without a network. Prints of each its time on a core (p50, p95), which others
that keep the machine busy change less, the time that passed (p50), the ratio of the former to that
of a page of the same run that asks the database for next to nothing, queries and size. Fails where
a page of a process that has warmed up takes 80 ms or more on a core.
"""

import gc
import statistics
import sys
import time
from dataclasses import dataclass

from django.test import Client

from bench.installation import Installation

MOST_MS = 80.0
CONTROL = "account_change_password"
ROUNDS = 30
HEAD = "| page | on a core, p50 | p95 | passed, p50 | to control | queries | KB |"


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one page. Milliseconds of each answer, by the core's clock and the wall's."""

    key: str
    busy: list[float]
    passed: list[float]
    queries: int
    size: int

    @property
    def middle(self) -> float:
        """The median on a core."""
        return statistics.median(self.busy)

    @property
    def high(self) -> float:
        """Of twenty answers, one takes longer on a core."""
        return statistics.quantiles(self.busy, n=20)[-1]

    def row(self, control: float) -> str:
        """A line of the table."""
        cells = (
            self.key,
            f"{self.middle:.1f}",
            f"{self.high:.1f}",
            f"{statistics.median(self.passed):.1f}",
            f"{self.middle / control:.1f}",
            str(self.queries),
            str(self.size // 1000),
        )
        return "| " + " | ".join(cells) + " |"


def main(rounds: int, names: list[str]) -> int:
    """Seed, ask, print; 1 when a page is too slow."""
    installation = Installation(SLOTSERVE_LOG_LEVEL="CRITICAL")
    try:
        installation.migrate()
        measured = _measured(rounds, names)
    finally:
        installation.close()
    control = next(each.middle for each in measured if each.key == CONTROL)
    print(HEAD + "\n|" + "---|" * HEAD.count(" |"))
    for figures in measured:
        print(figures.row(control))
    slow = [each.key for each in measured if each.high >= MOST_MS]
    print(f"too slow: {', '.join(slow)}" if slow else f"all under {MOST_MS:.0f} ms")
    return 1 if slow else 0


def _measured(rounds: int, names: list[str]) -> list[Figures]:
    from bench.made_up_company import settle  # noqa: PLC0415 - Django's settings are known only now
    from slotserve.demo.scale import Scale  # noqa: PLC0415
    from tests import every_page  # noqa: PLC0415

    site = every_page.made(Scale(lanes=50, members=200, bookings=20_000, requests=3))
    settle()
    gc.collect()
    gc.freeze()  # what seeding left is not gone through again while pages are measured
    return [
        _ask(site.clients[look.who], look.key, site.address(look), rounds)
        for look in every_page.PAGES
        if not names or look.name in names or look.key == CONTROL
    ]


def _ask(client: Client, key: str, address: str, rounds: int) -> Figures:
    from django.db import connection  # noqa: PLC0415
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415

    client.get(address)  # modules and templates are read
    with CaptureQueriesContext(connection) as asked:
        answer = client.get(address)
    queries = len(asked)  # the next request forgets them
    busy, passed = [], []
    for _ in range(rounds):
        wall, core = time.perf_counter(), time.process_time()
        client.get(address)
        busy.append((time.process_time() - core) * 1000)
        passed.append((time.perf_counter() - wall) * 1000)
    return Figures(key, busy, passed, queries, len(answer.content))


if __name__ == "__main__":
    has_rounds = len(sys.argv) > 1 and sys.argv[1].isdigit()
    asked_rounds = int(sys.argv[1]) if has_rounds else ROUNDS
    sys.exit(main(asked_rounds, sys.argv[2 if has_rounds else 1 :]))
