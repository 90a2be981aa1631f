"""Which machine is a host: two workers that take themselves for one must not both act.

Each would take the other's servers for lost, and start what runs there already. So who is the host
stays it until it has not been there for SLOTSERVE_HOST_SILENT_SECONDS, and the other waits.
"""

import logging
from datetime import datetime, timedelta

from django.conf import settings

from lanes import clock
from lanes.host_reports import mark, mark_of, measure, place, read_clocks
from lanes.models import Host, HostReport, Lane
from lanes.reporting import tell_once
from wire.words import said

log = logging.getLogger(__name__)


def is_ours() -> bool:
    """Whether this worker may act for its host; one that nobody is any more becomes ours."""
    key = settings.SLOTSERVE_HOST_KEY
    report = HostReport.objects.filter(host__key=key).first()
    if report is None:
        return _is_first(key)
    if mark_of(report.machine) == mark():
        return True
    now = clock.database_now()
    if _is_held(report, now):
        return False
    seen = HostReport.objects.filter(pk=report.pk, machine=report.machine, at=report.at)
    return bool(seen.update(machine=place(), at=now))


def hold() -> bool:
    """As `is_ours`, and then stays so for the next SLOTSERVE_HOST_SILENT_SECONDS, though no look
    may be asked for meanwhile: beat and planner may be away."""
    if not is_ours():
        return False
    mine = HostReport.objects.filter(host__key=settings.SLOTSERVE_HOST_KEY)
    mine.filter(machine__endswith=mark()).update(at=clock.database_now())
    return True


def other_machine(host: Host) -> str:
    """The machine that is this host, when it is another than this; empty: none."""
    report = HostReport.objects.filter(host=host).first()
    if report is None or mark_of(report.machine) == mark():
        return ""
    return report.machine if _is_held(report, clock.database_now()) else ""


def say_waiting() -> None:
    """Tell the log and the lanes that another worker is the host, if it still is."""
    host = Host.objects.filter(key=settings.SLOTSERVE_HOST_KEY).first()
    other = other_machine(host) if host else ""
    if host is None or not other:
        return
    log.error(
        "host=%s is %s, not %s: this worker waits. Stop one of the two, unless the other has just "
        "ended or this machine was just restarted.",
        host.key,
        other,
        place(),
    )
    words = said(
        "a second worker, on {place}, takes itself for {host}, and waits: stop one of them, unless "
        "its machine was just restarted",
        place=place(),
        host=host.name,
    )
    now = clock.database_now()
    for lane in Lane.objects.filter(host=host):
        tell_once(lane, now, "refused", words)


def _is_first(key: str) -> bool:
    host = Host.objects.filter(key=key).first()
    if host is None:
        return True  # there is nothing to act for
    made, _ = HostReport.objects.get_or_create(host=host, defaults=measure(*read_clocks()))
    return mark_of(made.machine) == mark()


def _is_held(report: HostReport, now: datetime) -> bool:
    """Whether who reported is the host still: workers of earlier releases left no mark, and nobody
    is who reported in the future."""
    return bool(mark_of(report.machine)) and _is_recent(report.at, now)


def _is_recent(at: datetime, now: datetime) -> bool:
    return now - timedelta(seconds=settings.SLOTSERVE_HOST_SILENT_SECONDS) < at <= now
