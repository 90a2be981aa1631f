"""What the pool of database connections saves: `DATABASE_URL=… python -m bench.connections [n]`.

DATABASE_URL is an empty PostgreSQL database, which is filled. Two web processes take turns, one
with a pool and one that opens a connection for each request, as the control. Prints the time of a
page on the web's core and until it is there (medians), and pages a second by eight who ask at once.
Fails where the pool saves nothing.
"""

import os
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx
import psutil

from bench.installation import WAIT_SECONDS, Installation
from bench.made_up_company import cookie_name, fill, free_port, start_web, until_answering

PAGES = ("/ready/", "/tokens/")
POOLS = ("20", "0")
AT_ONCE = 8
ROUNDS = 5


@dataclass(slots=True)
class Figures:
    """Of one page and one kind of process: ms on the core and until it is there, pages a second."""

    busy: list[float] = field(default_factory=list)
    passed: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)

    def row(self, page: str, pool: str) -> str:
        """A line of the table."""
        name = f"{page}, {'pool' if pool != '0' else 'a connection each'}"
        busy, passed, rate = map(statistics.median, (self.busy, self.passed, self.rate))
        return f"| {name} | {busy:.1f} ms | {passed:.1f} ms | {rate:.0f}/s |"


def main(count: int) -> int:
    """Fill, ask, print; 1 when the pool saves nothing."""
    url = os.environ.get("DATABASE_URL", "")
    if not url.startswith("postgres"):
        raise SystemExit("DATABASE_URL must name an empty PostgreSQL database")
    installation = Installation(DATABASE_URL=url, SLOTSERVE_LOG_LEVEL="CRITICAL")
    try:
        installation.migrate()
        sessions = fill({"lanes": 6, "members": 6, "bookings": 60, "requests": 2})
        found = _measured(sessions["member"], count)
    finally:
        installation.close()
    print("| | on the web's core | until it is there | eight at once |\n|---|---|---|---|")
    for (page, pool), figures in found.items():
        print(figures.row(page, pool))
    costs = {pool: sum(sum(found[page, pool].busy) for page in PAGES) for pool in POOLS}
    return 0 if costs[POOLS[0]] < costs[POOLS[1]] else 1


def _measured(session: str, count: int) -> dict[tuple[str, str], Figures]:
    webs = {}
    for pool in POOLS:
        port = free_port()
        process = start_web(port, SLOTSERVE_DATABASE_POOL=pool)
        webs[pool] = f"http://127.0.0.1:{port}", process
    try:
        for address, _ in webs.values():
            until_answering(address)
        found = {(page, pool): Figures() for page in PAGES for pool in POOLS}
        for _ in range(ROUNDS):
            for (page, pool), figures in found.items():
                address, process = webs[pool]
                _ask(f"{address}{page}", session, psutil.Process(process.pid), figures, count)
        return found
    finally:
        for _, process in webs.values():
            process.terminate()
            process.wait(WAIT_SECONDS)


def _ask(address: str, session: str, process: psutil.Process, figures: Figures, count: int) -> None:
    with httpx.Client(cookies={cookie_name(): session}) as client:
        client.get(address).raise_for_status()
        core, began = _core(process), time.perf_counter()
        for _ in range(count):
            client.get(address).raise_for_status()
        figures.passed.append((time.perf_counter() - began) * 1000 / count)
        figures.busy.append((_core(process) - core) * 1000 / count)
        with ThreadPoolExecutor(AT_ONCE) as askers:
            began = time.perf_counter()
            for answer in askers.map(lambda _: client.get(address), range(count)):
                answer.raise_for_status()
        figures.rate.append(count / (time.perf_counter() - began))


def _core(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
