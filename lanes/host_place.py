"""Which machine is a host: two workers that take themselves for one must not both act.

Each would take the other's servers for lost, and start what runs there already. So who is the host
stays it until it has not looked for SLOTSERVE_HOST_SILENT_SECONDS, and the other does nothing.
"""

import logging
from datetime import datetime, timedelta

from django.conf import settings

from lanes import clock
from lanes.host_reports import is_marked, measure, place, read_clocks
from lanes.models import Host, HostReport, Lane
from lanes.reporting import tell_once

log = logging.getLogger(__name__)


def is_ours() -> bool:
    """Whether this worker may act for its host; one that nobody is any more becomes ours."""
    key = settings.SLOTSERVE_HOST_KEY
    report = HostReport.objects.filter(host__key=key).select_related("host").first()
    if report is None:
        return _is_first(key)
    if report.machine == place() or not is_marked(report.machine):
        return True
    now = clock.database_now()
    if _is_recent(report.at, now):
        _tell(report, now)
        return False
    seen = HostReport.objects.filter(pk=report.pk, machine=report.machine, at=report.at)
    return bool(seen.update(machine=place(), at=now))


def other_machine(host: Host) -> str:
    """The machine that is this host, when it is another than this; empty: none."""
    report = HostReport.objects.filter(host=host).first()
    if report is None or report.machine == place() or not is_marked(report.machine):
        return ""
    return report.machine if _is_recent(report.at, clock.database_now()) else ""


def _is_first(key: str) -> bool:
    host = Host.objects.filter(key=key).first()
    if host is None:
        return True  # there is nothing to act for
    made, _ = HostReport.objects.get_or_create(host=host, defaults=measure(*read_clocks()))
    return made.machine == place()


def _is_recent(at: datetime, now: datetime) -> bool:
    """Whether who reported then is there still; nobody is who reported in the future."""
    return now - timedelta(seconds=settings.SLOTSERVE_HOST_SILENT_SECONDS) < at <= now


def _tell(report: HostReport, now: datetime) -> None:
    log.error(
        "host=%s is %s, not %s: nothing is done here. Stop one of the two workers.",
        report.host.key,
        report.machine,
        place(),
    )
    words = f"a second worker, on {place()}, takes itself for {report.host.name}: stop one of them"
    for lane in Lane.objects.filter(host=report.host):
        tell_once(lane, now, "refused", words)
