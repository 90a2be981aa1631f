"""Reading the facts of the self-check. Nothing here raises for what is broken elsewhere."""

import os
import shutil
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from tempfile import gettempdir
from zoneinfo import TZPATH, available_timezones

from django.conf import settings
from django.core.checks import ERROR, WARNING, CheckMessage, run_checks
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from bookings.guards import guards_present
from lanes.host_reports import read_clocks
from lanes.host_services import is_loopback
from lanes.host_watch import hosts_with_facts, troubles_of
from lanes.models import Lane
from lanes.reach import may_be_unknown_elsewhere, open_to_all, why_not_for_others
from slotserve.selfcheck.facts import (
    DatabaseFacts,
    DiskFacts,
    Facts,
    HostFacts,
    ReachFacts,
    ZoneFacts,
)
from slotserve.selfcheck.reading_valkey import read_valkey
from wire.env import read_path

GUARDS_CHECK = "slotserve.E001"  # the guards have a check of their own here


def read_facts() -> Facts:
    """Everything, in about a second: workers are given that long to answer."""
    database = read_database()
    complaints = _complaints()
    return Facts(
        database=database,
        valkey=read_valkey(is_database_up=isinstance(database, DatabaseFacts)),
        disks=tuple(read_disk(path) for path in _folders()),
        zones=read_zones(),
        reach=read_reach(),
        settings=_of_level(complaints, ERROR),
        warnings=_of_level(complaints, WARNING),
    )


def read_database() -> DatabaseFacts | str:
    """Guards, migrations and hosts, or why it does not answer."""
    try:
        connection.ensure_connection()
        now, local_ahead = read_clocks()
        unapplied = _unapplied()
        hosts = () if unapplied else _hosts()  # tables may lack columns
        return DatabaseFacts(now, local_ahead, guards_present(), unapplied, hosts)
    except DatabaseError as error:
        return _first_line(error)


def read_disk(path: Path) -> DiskFacts:
    """Room in a folder; none where it cannot be looked at."""
    try:
        found = os.statvfs(path)
        free_files = found.f_favail / found.f_files if found.f_files else 1.0
        free = shutil.disk_usage(path).free
        return DiskFacts(str(path), free, free_files, os.access(path, os.W_OK | os.X_OK))
    except OSError:
        return DiskFacts(str(path), 0, 0.0, is_writable=False)


def read_reach() -> ReachFacts:
    """What of database and Valkey is open to other machines, by the settings."""
    refusal = why_not_for_others()
    why_not = refusal.words if refusal else ""
    return ReachFacts(why_not, may_be_unknown_elsewhere(), open_to_all(settings.REDIS_URL))


def read_zones() -> ZoneFacts:
    """Which zones Python finds, and of which release of the world's rules."""
    known = available_timezones()
    zone = settings.TIME_ZONE
    return ZoneFacts(zone, zone in known, len(known), _zones_version())


def _zones_version() -> str:
    """The system's rules come first, then those of the tzdata package, as zoneinfo looks."""
    for folder in TZPATH:
        try:
            with (Path(folder) / "tzdata.zi").open() as file:
                first = file.readline()
        except OSError:
            continue
        return first.removeprefix("# version ").strip()
    try:
        return metadata.version("tzdata")
    except metadata.PackageNotFoundError:
        return ""


def _folders() -> list[Path]:
    """The data folder, and where large bodies wait."""
    spool = read_path("SLOTSERVE_SPOOL_DIR", Path(gettempdir()))
    return list(dict.fromkeys([Path(settings.SLOTSERVE_DATA), spool]))


def _unapplied() -> tuple[str, ...]:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return tuple(f"{migration.app_label}.{migration.name}" for migration, _ in plan)


def _hosts() -> tuple[HostFacts, ...]:
    used = set(Lane.objects.filter(enabled=True).values_list("host_id", flat=True))
    hosts = hosts_with_facts().order_by("name")
    return tuple(
        HostFacts(h.key, h.name, h.pk in used, tuple(troubles_of(h)), not is_loopback(h.address))
        for h in hosts
    )


def _complaints() -> list[CheckMessage]:
    """Of Django's own checks and ours, but for those that this list has itself."""
    try:
        found = run_checks(databases=[DEFAULT_DB_ALIAS])
    except DatabaseError:
        found = run_checks()
    return [each for each in found if not each.is_silenced() and each.id != GUARDS_CHECK]


def _of_level(complaints: list[CheckMessage], level: int) -> Mapping[str, str]:
    """Those of this level, errors with what is above them."""
    top = {ERROR: 100, WARNING: ERROR}[level]
    return {str(each.msg): str(each.hint or "") for each in complaints if level <= each.level < top}


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
