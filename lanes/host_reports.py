"""What a host's worker says of its machine, with its looks."""

import hashlib
import os
import pwd
import re
import shutil
import socket
import time
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Q

from lanes import clock, records
from lanes.gpus import nvml
from lanes.models import Driver, Host, HostReport
from lanes.version import code_version
from wire.words import kept_of, marked, said

WORDS = 300
_MARK = re.compile(r" (#[0-9a-f]{8})\Z")


def report_seen(host: Host) -> bool:
    """Say that the host is there and how it is, every quarter of the time after which it counts
    as unreachable; whether it was due."""
    now, skew = read_clocks()
    every = timedelta(seconds=settings.SLOTSERVE_HOST_SILENT_SECONDS / 4)
    is_due = Q(seen_at=None) | Q(seen_at__lt=now - every) | Q(seen_at__gt=now)
    if not Host.objects.filter(is_due, pk=host.pk).update(seen_at=now):
        return False
    values = measure(now, skew)
    report, is_new = HostReport.objects.get_or_create(host=host, defaults=values)
    if is_new:
        return True
    # A worker that was held up in its look may find that another is the host by now.
    same = HostReport.objects.filter(pk=report.pk, machine=report.machine)
    return mark_of(report.machine) in {"", mark()} and bool(same.update(**values))


def read_clocks() -> tuple[datetime, float]:
    """The database's time, and how far this machine's is ahead of it; its question takes a while,
    so the middle of it is compared."""
    before = time.time()
    now = clock.database_now()
    return now, (before + time.time()) / 2 - now.timestamp()


def measure(now: datetime, skew: float) -> dict[str, object]:
    """The columns of a report."""
    disk = shutil.disk_usage(settings.SLOTSERVE_DATA)
    driver, words = driver_state()
    own = _own_name()
    other = settings.SLOTSERVE_RUN_AS if os.geteuid() == 0 else ""
    return {
        "at": now,
        "version": code_version(),
        "machine": place(),
        "clock_skew": round(skew, 3),
        "disk_free_bytes": disk.free,
        "disk_total_bytes": disk.total,
        "driver": driver,
        "driver_words": words[:WORDS],
        "words": kept_of(words),
        "servers_run_as": other or own,
        "is_user_shared": not other or other == own,
    }


def _own_name() -> str:
    """The worker's user; a number in a container whose image does not name it."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def place() -> str:
    """The machine's name, for people, and the mark by which its worker is known."""
    return f"{socket.gethostname()[:240]} {mark()}"


def mark() -> str:
    """The data folder's mark: the same after a restart and under another name of the machine, and
    another in a copy, which has a name of its own (`lanes.installation`)."""
    folder = Path(settings.SLOTSERVE_DATA).resolve()
    return "#" + hashlib.sha256(f"{folder} {records.installation_id()}".encode()).hexdigest()[:8]


def mark_of(machine: str) -> str:
    """The mark of who reported; workers of earlier releases left none: empty."""
    found = _MARK.search(machine)
    return found[1] if found else ""


def driver_state() -> tuple[Driver, str]:
    """What NVML says now: its version and how many cards, or what is wrong."""
    found = nvml.read()
    if found.trouble:
        return Driver.FAILING, found.trouble
    if found.is_driverless:
        return Driver.NONE, said("models run on the CPU")
    count = len(found.cards)
    one, more = marked("driver {version}, {count} card"), marked("driver {version}, {count} cards")
    return Driver.WELL, said(one if count == 1 else more, version=found.driver, count=count)
