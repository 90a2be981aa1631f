"""Random faults under traffic: everything is killed, emptied, filled up or stepped, and comes back.

    .venv/bin/python -m bench.faults [--faults 300] [--hosts 1|2] [--seed N] [--report FILE]
        [--keep FOLDER] [--patience 1]

With one host: the whole product as bin/up runs it, on SQLite, kept up as an init system would, on
a small disk of its own (root; else no fault fills it), under a clock of its own (libfaketime;
else none is stepped). With two: machines in network namespaces (root), the second one joined with
bin/join, on a PostgreSQL of its own that is restarted, and a link between them that is cut for 1
to 15 s. Slots of 20 s go from member to member and preset to preset on two lanes while members
ask all the time. Faults come in bouts of one to four, right after each other; then every lane
must be right again (order, processes, an answer through the gateway) within drain + stop + load +
10 s, and the time that a preset rests after a failure (docs/scheduling.md) where its server was
the victim, and the 15 s after which a lost link is noticed where one was cut. It counts from the
last fault, and anew when another preset is wanted or somebody else has the lane, within one
slot's length. With a patience beyond 1 a lane that is late is told of, and fails only when it is
not right after so many times the promise: for machines that have other work.
Afterwards what members and model servers noted is compared. Fails when a promise was broken: a lane
too late, two servers of one lane at once, a process left behind, somebody served in another's slot,
an answer of another model, an error 500, a preset that rests though its server was no victim.
"""

import argparse
import asyncio
import os
import random
import secrets
import statistics
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import django

from bench.fault_parts import settings
from bench.fault_parts.stack import temporary_folder


def read_arguments() -> argparse.Namespace:
    """Before Django is set up: they say on which database."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--hosts", type=int, choices=(1, 2), default=1)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--report", type=Path)
    parser.add_argument("--keep", type=Path, help="a folder for logs and notes")
    parser.add_argument("--patience", type=float, default=1.0)
    return parser.parse_args()


wanted = read_arguments()
folder = temporary_folder()
os.environ.update(settings.environment(folder, wanted.hosts))
django.setup()

from django.db import connection  # noqa: E402

from bench.fault_parts import pair  # noqa: E402
from bench.fault_parts.breaking import Breaker  # noqa: E402
from bench.fault_parts.campaign import Campaign  # noqa: E402
from bench.fault_parts.installation import Installation  # noqa: E402
from bench.fault_parts.judge import Evidence, broken_promises  # noqa: E402
from bench.fault_parts.right import Watcher  # noqa: E402
from bench.fault_parts.site import Site  # noqa: E402
from bench.fault_parts.waiting import SLOT_SECONDS, Recovery  # noqa: E402
from bench.soak_parts.cast import LANES, Turns, book_all, preset_names, set_up  # noqa: E402
from bench.soak_parts.judge import outcomes, read_served  # noqa: E402
from bench.soak_parts.members import Members  # noqa: E402
from lanes import clock  # noqa: E402
from lanes.models import Host, Lane, LaneEvent  # noqa: E402

SECONDS_FOR_A_FAULT = 25.0  # at most on the average: for so long slots are booked
FIRST_SECONDS = 15.0  # until the first slot
AT_ONCE = 1  # requests of each member


def main() -> int:
    """Set up, break, judge."""
    if wanted.hosts == 2 and (why_not := pair.why_not()):
        sys.exit(f"NO CAMPAIGN WITH TWO HOSTS HERE: {why_not}")
    print(f"seed {wanted.seed}", flush=True)
    site: Installation = pair.Pair(folder) if wanted.hosts == 2 else Site.open(folder)
    try:
        text, found = campaign(site, wanted.faults, wanted.seed, wanted.patience)
    finally:
        connection.close()
        site.stop()
        if wanted.keep:
            site.keep(wanted.keep)
        site.close()
    print(text)
    if wanted.report:
        wanted.report.write_text(text)
    return 1 if found else 0


def campaign(site: Installation, count: int, seed: int, patience: float) -> tuple[str, list[str]]:
    """All of it; the report and the broken promises."""
    keys = set_up(list(Host.objects.order_by("pk")), site.folder)
    lanes = list(Lane.objects.select_related("host").order_by("pk"))
    slots = book_all(turns(count))
    breaker = Breaker(site, lanes, random.Random(seed))
    gateway = urlsplit(site.gateway_url)
    members = Members(
        keys,
        list(LANES),
        preset_names(),
        lambda: [gateway.port or 0],
        AT_ONCE,
        address=gateway.hostname or "",
    )
    faults = Campaign(breaker, Watcher(site, keys), patience)
    faults.begin()
    recoveries = asyncio.run(under_traffic(members, faults, count))
    connection.close()  # a restarted database has forgotten it
    evidence = Evidence(
        asked=members.asked,
        served=read_served(site.served),
        slots=slots,
        lanes={str(lane.pk): lane.slug for lane in lanes},
        made=breaker.made,
        counted_failures=LaneEvent.objects.filter(
            kind="failed", sentence__contains="next try in"
        ).count(),
        clock=site.clock,
    )
    promises = broken_promises(evidence, site.served)
    found = [*late(recoveries, patience), *promises, *site.stop()]
    return report(site, evidence, recoveries, found), found


async def under_traffic(members: Members, faults: Campaign, count: int) -> list[Recovery]:
    """The faults while members ask."""
    asking = asyncio.create_task(members.ask_until_over())
    try:
        return await asyncio.to_thread(lambda: list(faults.run(count)))
    finally:
        members.is_over = True
        await asking


def turns(count: int) -> Turns:
    """Enough slots for so many faults."""
    first = clock.database_now() + timedelta(seconds=FIRST_SECONDS)
    seconds = 120 + count * SECONDS_FOR_A_FAULT
    return Turns(first, SLOT_SECONDS, int(seconds / SLOT_SECONDS))


def late(recoveries: list[Recovery], patience: float) -> list[str]:
    """Lanes that were not right again in time or, with patience, at all."""
    return [
        f"{one.lane} was not right {one.seconds:.1f} s after {', '.join(one.faults)} "
        f"(limit {one.limit:.1f} s): {one.wrong or 'right at last'}"
        for one in recoveries
        if (one.is_late if patience <= 1 else one.wrong)
    ]


def report(
    site: Installation, evidence: Evidence, recoveries: list[Recovery], found: list[str]
) -> str:
    """What happened, for people."""
    seconds = sorted(one.seconds for one in recoveries)
    lines = [
        f"# {len(evidence.made)} random faults, {' and '.join(site.stages)}",
        "",
        f"{len(evidence.asked)} requests, {len(evidence.served)} at model servers; "
        f"{site.restarts} times what had ended was started again.",
        f"Lanes were right again after {statistics.median(seconds):.1f} s (median), "
        f"{seconds[-1]:.1f} s (longest), "
        f"{sum(not one.is_late for one in recoveries)} of {len(seconds)} times within the promise.",
        *(f"**Not tried: {words}.**" for words in site.missing()),
        "",
        "| fault | times |",
        "|---|---|",
        *(f"| {name} | {n} |" for name, n in Counter(f.name for f in evidence.made).most_common()),
        "",
        "| outcome | requests |",
        "|---|---|",
        *(f"| {name} | {number} |" for name, number in outcomes(evidence.asked)),
        "",
        f"Broken promises: {len(found) or 'none'}",
        *(f"- {words}" for words in found[:50]),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
