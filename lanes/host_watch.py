"""Who of the hosts is there: asked with each beat, told once when it changes. Nothing is guessed:
what lanes of an unreachable host do stays as it was last reported, and is marked so."""

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, Q, QuerySet

from lanes import clock, ticks
from lanes.alarms import Alarm, step
from lanes.events import add_event
from lanes.host_health import (
    MARGIN,
    HostFacts,
    Report,
    Trouble,
    is_overdue,
    troubles,
    unreachable_since,
)
from lanes.models import Driver, Host, HostReport, Lane
from lanes.version import code_version
from wire.words import said

log = logging.getLogger(__name__)
GONE = frozenset({"unreachable", "never_seen"})


def silent_after() -> timedelta:
    """How long a host may be silent."""
    return timedelta(seconds=settings.SLOTSERVE_HOST_SILENT_SECONDS)


def hosts_with_facts() -> QuerySet[Host]:
    """Hosts with what `facts_of` needs."""
    return Host.objects.select_related("report").annotate(card_count=Count("gpus"))


def facts_of(host: Host) -> HostFacts:
    """A row of `hosts_with_facts` as the pure functions take it."""
    report: HostReport | None = getattr(host, "report", None)
    return HostFacts(
        name=host.name,
        address=host.address,
        seen_at=host.seen_at,
        asked_at=host.asked_at,
        unreachable_since=host.unreachable_since,
        has_cards=bool(getattr(host, "card_count", 0)),
        report=_report(report) if report else None,
    )


def troubles_of(host: Host) -> list[Trouble]:
    """What is wrong with a row of `hosts_with_facts`."""
    return troubles(facts_of(host), code_version())


def note_asked(hosts: Iterable[Host], now: datetime) -> None:
    """These were asked to look: remember since when those whose look is overdue have been."""
    late = [host.pk for host in hosts if is_overdue(host.seen_at, now, silent_after())]
    if late:
        unasked = Q(asked_at=None) | Q(seen_at__isnull=False, asked_at__lte=F("seen_at"))
        Host.objects.filter(unasked, pk__in=late).update(asked_at=now)


def watch_hosts() -> None:
    """Mark hosts that have vanished or are back; begin and end alarms (`lanes.alarms`)."""
    now = clock.database_now()
    for host in hosts_with_facts():
        _mark(host, now)
        _follow(host, now)


def _mark(host: Host, now: datetime) -> None:
    before = host.unreachable_since
    since = unreachable_since(facts_of(host), now, silent_after())
    if since == before:
        return
    if Host.objects.filter(pk=host.pk, unreachable_since=before).update(unreachable_since=since):
        host.unreachable_since = since


def alarms_of(host: Host, now: datetime) -> dict[str, Alarm]:
    """The alarms in force, by code; one that an earlier release has written begins now."""
    times: dict[str, dict[str, str | None]] = host.alarm_times
    return {code: _alarm(times.get(code, {}), now) for code in host.alarms}


def _follow(host: Host, now: datetime) -> None:
    """Begin and end alarms."""
    facts, version = facts_of(host), code_version()
    found = {trouble.code: trouble for trouble in troubles(facts, version)}
    before = alarms_of(host, now)
    unclear = {trouble.code for trouble in troubles(facts, version, margin=MARGIN)}
    if facts.unreachable_since is not None:
        unclear |= set(before) - GONE  # it was well when it was last heard of, or was not
    after = step(before, set(found), unclear, now)
    if after != before or set(host.alarm_times) != set(after):
        _change(host, before, after, found, now)


@transaction.atomic
def _change(
    host: Host,
    before: Mapping[str, Alarm],
    after: Mapping[str, Alarm],
    found: Mapping[str, Trouble],
    now: datetime,
) -> None:
    seen = Host.objects.filter(pk=host.pk, alarms=host.alarms, alarm_times=host.alarm_times)
    times = {code: _times(alarm) for code, alarm in after.items()}
    if not seen.update(alarms=list(after), alarm_times=times):
        return  # somebody was first
    new, over = set(after) - set(before), set(before) - set(after)
    for code in sorted(new):
        log.error("host=%s %s: %s. %s", host.key, code, found[code].words, found[code].hint)
    for code in sorted(over):
        log.info("host=%s %s: over", host.key, code)
    if GONE & new:
        words = said("{host} does not answer: nothing is known of it", host=host.name)
        _tell_lanes(host, now, "unreachable", words)
    elif GONE & over and not GONE & set(after):
        words = said("{host} is back and has looked at its servers", host=host.name)
        if "never_seen" in over:
            words = said(
                "{host} answers for the first time, and has looked at its servers", host=host.name
            )
        _tell_lanes(host, now, "reachable", words)
    if new or over:
        ticks.notices_soon()


def _alarm(times: Mapping[str, str | None], now: datetime) -> Alarm:
    since, well_since = times.get("since"), times.get("well_since")
    return Alarm(
        datetime.fromisoformat(since) if since else now,
        datetime.fromisoformat(well_since) if well_since else None,
    )


def _times(alarm: Alarm) -> dict[str, str | None]:
    well_since = alarm.well_since
    return {
        "since": alarm.since.isoformat(),
        "well_since": well_since.isoformat() if well_since else None,
    }


def _tell_lanes(host: Host, now: datetime, kind: str, sentence: str) -> None:
    for lane in Lane.objects.filter(host=host):
        add_event(lane, now, kind, sentence)


def _report(report: HostReport) -> Report:
    return Report(
        at=report.at,
        version=report.version,
        clock_skew=report.clock_skew,
        disk_free_bytes=report.disk_free_bytes,
        disk_total_bytes=report.disk_total_bytes,
        is_driver_failing=report.driver == Driver.FAILING,
        driver_words=report.driver_words,
        is_user_shared=report.is_user_shared,
    )
