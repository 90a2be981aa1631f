"""hosts: which hosts there are, how they are, and what is wrong; status 1 when something is."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from slotserve.hosts import HostOverview, hosts_for_people, overview


class Command(BaseCommand):
    """For people, and for a monitor that looks at the exit status."""

    help = "Show each host: state, last look, clock, disk, GPUs. Exit status 1: one is not well."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """[--json]."""
        parser.add_argument("--json", action="store_true", help="one object a host, for programs")

    def handle(self, *args: object, **options: Any) -> None:
        """Print, then say by the status whether all is well."""
        views = [overview(host) for host in hosts_for_people()]
        if options["json"]:
            self.stdout.write(json.dumps([_as_json(view) for view in views], default=str))
        for view in views if not options["json"] else []:
            self.stdout.write("\n".join(_in_words(view)))
        if any(view.state != "well" for view in views):
            sys.exit(1)


def _as_json(view: HostOverview) -> dict[str, object]:
    return {
        "key": view.host.key,
        "state": view.state,
        "seen_at": view.seen_at and view.seen_at.isoformat(),
        "troubles": [{"code": each.code, "words": each.words} for each in view.troubles],
    }


def _in_words(view: HostOverview) -> list[str]:
    seen = f"last look {view.seen_at:%Y-%m-%d %H:%M:%S} UTC" if view.seen_at else "never looked"
    lines = [f"{view.host.key}: {view.state}, {seen}, servers on {view.host.address}"]
    if view.report is not None:
        lines.append(
            f"  {view.report.version}, clock {view.report.clock_skew:+.3f} s, "
            f"{view.report.disk_free_bytes / 2**30:.1f} GiB free, "
            f"{view.report.driver_words}, servers run as {view.report.servers_run_as}"
        )
    wrong = [f"{each.words}. {each.hint}" for each in view.troubles]
    return [*lines, *(f"  ! {words}" for words in [*wrong, view.unheard] if words)]
