"""How long the pages take the server: `python -m bench.pages [rounds] [page ...]`.

The made-up company with 50 lanes, 200 members and 20,000 bookings. Each page of the product is
asked in this process, without a network. Prints of each its time on a core (p50, p95), which others
that keep the machine busy change less, the time that passed (p50), the ratio of the former to that
of a page of the same run that asks the database for next to nothing, queries and size. Fails where
a page of a process that has warmed up takes 80 ms or more on a core. Measured beside the pages:
parts of them that refresh by themselves, and ("cold") pages of which nothing is kept, as they are
once a minute for one reader of all.
"""

import statistics
import sys
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from django.test import Client

from bench.installation import Installation

if TYPE_CHECKING:
    from tests.every_page import Site

MOST_MS = 80.0
CONTROL = "account_change_password"
ROUNDS = 30
COLD = (  # by their keys: what of them is the same for many is kept for a minute
    "usage?by=member",
    "calendar?view=month&as=picture",
    "lane?as=administrator",
    "catalogue",
    "overview",
    "calendar-events?view=week",
)
PARTS = (  # name, query, whether a script asks for a part of the page
    ("calendar-events", "?view=day", False),
    ("calendar-events", "?view=week", False),
    ("calendar-events", "?view=month", False),
    ("calendar", "?view=month", True),
    ("book", "?lane=atlas-0", True),
    ("overview", "?part", True),
    ("overview", "?lane=atlas-0", True),
    ("lane", "?part", True),
    ("lane-gpus", "", True),
    ("lane-gpu-day", "", True),
)
PART = {"HX-Request": "true"}
HEAD = "| page | on a core, p50 | p95 | passed, p50 | to control | queries | KB |"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, by whom; cold: of what is kept, nothing is known."""

    key: str
    client: Client
    address: str
    headers: dict[str, str] = field(default_factory=dict)
    is_cold: bool = False

    @property
    def name(self) -> str:
        """Of its address, and of a page of which there are several."""
        return self.key.partition("?")[0].partition(",")[0]

    def forget(self) -> None:
        """What a cold page may not know."""
        from django.core.cache import caches  # noqa: PLC0415 - settings are known only now

        from slotserve.calendar.reading import rows_once  # noqa: PLC0415

        if self.is_cold:
            caches["cards"].clear()
            caches["sums"].clear()
            rows_once.cache_clear()

    def answer(self) -> int:
        """Ask; the answer's size in bytes. RuntimeError when the server fails."""
        answer = self.client.get(self.address, headers=self.headers)
        if answer.status_code >= 500:
            raise RuntimeError(f"{self.key}: {answer.status_code}")
        return len(answer.content)


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one page. Milliseconds of each answer, by the core's clock and the wall's."""

    key: str
    busy: list[float]
    passed: list[float]
    queries: int
    size: int
    is_cold: bool

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
    slow = [each.key for each in measured if each.high >= MOST_MS and not each.is_cold]
    print(f"too slow: {', '.join(slow)}" if slow else f"all under {MOST_MS:.0f} ms")
    return 1 if slow else 0


def _measured(rounds: int, names: list[str]) -> list[Figures]:
    from bench.made_up_company import settle  # noqa: PLC0415 - Django's settings are known only now
    from slotserve import garbage  # noqa: PLC0415
    from slotserve.demo.scale import Scale  # noqa: PLC0415
    from tests import every_page  # noqa: PLC0415

    site = every_page.made(Scale(lanes=50, members=200, bookings=20_000, requests=3))
    settle()
    garbage.settle()  # as the web process does, with what seeding left
    wanted = [
        each for each in _questions(site) if not names or each.name in names or each.key == CONTROL
    ]
    return [_ask(each, rounds) for each in wanted]


def _questions(site: "Site") -> list[Question]:
    from tests.every_page import MEMBER, PAGES, Look  # noqa: PLC0415

    pages = [Question(look.key, site.clients[look.who], site.address(look)) for look in PAGES]
    parts = []
    for name, query, is_part in PARTS:
        look = Look(name, MEMBER, {"slug": "lane"} if name.startswith("lane") else {}, query)
        key = f"{look.key}, part" if is_part else look.key
        headers = PART if is_part else {}
        parts.append(Question(key, site.clients[MEMBER], site.address(look), headers))
    kept = [each for each in [*pages, *parts] if each.key in COLD]
    cold = [replace(each, key=f"{each.key}, cold", is_cold=True) for each in kept]
    return [*pages, *cold, *parts]


def _ask(question: Question, rounds: int) -> Figures:
    from django.db import connection  # noqa: PLC0415
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415

    question.answer()  # modules and templates are read
    question.forget()
    with CaptureQueriesContext(connection) as asked:
        size = question.answer()
    queries = len(asked)  # the next request forgets them
    busy, passed = [], []
    for _ in range(rounds):
        question.forget()
        wall, core = time.perf_counter(), time.process_time()
        question.answer()
        busy.append((time.process_time() - core) * 1000)
        passed.append((time.perf_counter() - wall) * 1000)
    return Figures(question.key, busy, passed, queries, size, question.is_cold)


if __name__ == "__main__":
    has_rounds = len(sys.argv) > 1 and sys.argv[1].isdigit()
    asked_rounds = int(sys.argv[1]) if has_rounds else ROUNDS
    sys.exit(main(asked_rounds, sys.argv[2 if has_rounds else 1 :]))
