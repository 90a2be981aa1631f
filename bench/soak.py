"""A long mixed load on a whole installation whose bookings turn, presets switch, edges restart.

    .venv/bin/python -m bench.soak [--minutes 15] [--report FILE]

SQLite, Valkey, worker and beat as bin/up starts them, three edges, two lanes, a stand-in for
llama-server that notes what it serves. Each slot of 20 s belongs to another member with another
preset; some are for the whole GPU, some are free for all. Edges are stopped or killed all the time.
Afterwards the judge reads what members, model servers and database say. Fails when a promise was
broken: somebody served in another's slot, an admitted request cut inside its drain time or lost,
a count that is not zero.
"""

import argparse
import asyncio
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

from bench.installation import HOST_KEY, Installation
from bench.soak_parts.edges import Edges
from bench.soak_parts.judge import Evidence, Server, faults, outcomes, read_served
from bench.soak_parts.members import Asked, Members
from bench.soak_parts.model_server import write_wrapper

DRAIN_SECONDS = 3.0
installation = Installation(
    SLOTSERVE_LLAMA_SERVER="",
    SLOTSERVE_DRAIN_SECONDS=f"{DRAIN_SECONDS:g}",
    SLOTSERVE_STOP_TIMEOUT_SECONDS="2",
    SLOTSERVE_BUFFER_SECONDS="6",
    SLOTSERVE_MIN_PRELOAD_SECONDS="6",
    SLOTSERVE_EDGE_STOP_SECONDS="30",
    SLOTSERVE_PORT_FIRST="23100",
    SLOTSERVE_PORT_LAST="24999",
)

from bench.soak_parts.cast import LANES, MEMBERS, PRESETS, Turns, book_all, set_up  # noqa: E402
from gateway.models import UsageRecord  # noqa: E402
from gateway.usage import ingest  # noqa: E402
from lanes import clock, ticks  # noqa: E402
from lanes.models import Host, Runtime  # noqa: E402
from lanes.stopping import stop_all  # noqa: E402
from wire.edges import EDGES, decode_report  # noqa: E402

SLOT_SECONDS = 20.0
RESTART_SECONDS = 25.0
SETTLE_SECONDS = 20.0
FIRST_SECONDS = 10.0  # until the first slot


def main() -> int:
    """Set up, soak, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--report", type=Path)
    wanted = parser.parse_args()
    log = installation.folder / "served"
    log.touch()
    edges = None
    try:
        installation.migrate()
        program = write_wrapper(installation.folder / "llama-server", log)
        host = Host.objects.create(key=HOST_KEY, name=HOST_KEY)
        keys = set_up([host], installation.folder)
        installation.start_workers(SLOTSERVE_LLAMA_SERVER=str(program))
        edges = Edges(3, installation.folder / "edge.log")
        slots = book_all(turns(wanted.minutes * 60))
        asked = asyncio.run(soak(keys, edges, wanted.minutes * 60))
        left = wait_for_zero()
        ends = (edges.kills, edges.stops)
        evidence = Evidence(asked, read_served(log), slots, servers(), *ends, DRAIN_SECONDS)
        found = [*faults(evidence), *left]
        statuses = edges.stop()
        found += [f"an edge ended with status {status}" for status in statuses if status]
        text = report(evidence, edges, found, wanted.minutes)
    finally:
        installation.stop_workers()
        list(stop_all(2.0))
        keep_logs()
        installation.close()
    print(text)
    if wanted.report:
        wanted.report.write_text(text)
    return 1 if found else 0


async def soak(keys: dict[str, str], edges: Edges, seconds: float) -> list[Asked]:
    """Everybody asks, edges come and go, for so long."""
    members = Members(keys, list(LANES), list(PRESETS), lambda: list(edges.ports))
    turning = asyncio.create_task(edges.turn_over(RESTART_SECONDS))
    asking = asyncio.create_task(members.ask_until_over())
    await asyncio.wait({turning, asking}, timeout=seconds, return_when="FIRST_COMPLETED")
    members.is_over = True
    await asking
    turning.cancel()
    await asyncio.wait({turning})
    if not turning.cancelled() and turning.exception():
        raise RuntimeError("the edges could not be turned over") from turning.exception()
    return members.asked


def turns(seconds: float) -> Turns:
    """Slots from a little later until the end."""
    first = clock.database_now() + timedelta(seconds=FIRST_SECONDS)
    return Turns(first, SLOT_SECONDS, int(seconds / SLOT_SECONDS))


def servers() -> list[Server]:
    """Every model server that ran."""
    rows = Runtime.objects.select_related("lane")
    return [
        Server(
            row.lane.slug,
            row.port,
            row.started_at.timestamp(),
            row.ended_at.timestamp() if row.ended_at else time.time(),
            row.drain_until.timestamp() if row.drain_until else None,
        )
        for row in rows
    ]


def wait_for_zero() -> list[str]:
    """Counts that are not zero after a while, a sentence each."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while (left := counts_left()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left


def counts_left() -> list[str]:
    """What edges that live still report in flight."""
    reports: dict[bytes, bytes] = ticks.valkey().hgetall(EDGES)  # type: ignore[assignment]
    decoded = [decode_report(name.decode(), payload) for name, payload in reports.items()]
    return [
        f"edge {one.edge_id} still counts {count.in_flight} on {slug}"
        for one in decoded
        if one is not None and not one.goodbye
        for slug, count in one.lanes.items()
        if count.in_flight
    ]


def report(evidence: Evidence, edges: Edges, found: list[str], minutes: float) -> str:
    """What happened, for people."""
    while ingest().entries:
        pass
    switches = len(evidence.servers)
    lines = [
        f"# Soak of {minutes:g} minutes",
        "",
        f"{len(evidence.asked)} requests by {len(MEMBERS)} members over 3 edges; "
        f"{len(evidence.served)} reached a model server; {len(evidence.slots)} slots; "
        f"{switches} model servers; {edges.restarts} restarts of edges, "
        f"{len(edges.kills)} of them kills; {UsageRecord.objects.count()} usage records.",
        "",
        "| outcome | requests |",
        "|---|---|",
        *(f"| {name} | {count} |" for name, count in outcomes(evidence.asked)),
        "",
        f"Broken promises: {len(found) or 'none'}",
        *(f"- {words}" for words in found[:50]),
        "",
    ]
    return "\n".join(lines)


def keep_logs() -> None:
    """Where SLOTSERVE_SOAK_LOGS names a folder, the edges' and workers' logs go there."""
    folder = os.environ.get("SLOTSERVE_SOAK_LOGS")
    for path in (installation.folder / "edge.log", installation.log) if folder else ():
        if path.exists():
            (Path(folder or ".") / path.name).write_bytes(path.read_bytes())


if __name__ == "__main__":
    sys.exit(main())
