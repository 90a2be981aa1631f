"""What the route table is made of, read from the database in a fixed number of queries."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Greatest

from bookings.models import Booking, BookingShare, State
from gateway.edge.table import Closure, Grant
from lanes.estimates import load_estimates
from lanes.models import Lane, Maintenance, PresetFailure, Runtime

KEPT = timedelta(hours=1)  # what is over stays so long: a clock that is set back makes it present


@dataclass(frozen=True, slots=True)
class Server:
    """A lane's model server that is alive."""

    generation: int
    revision_id: int
    phase: str
    started_at: datetime
    drain_until: datetime | None
    address: str
    port: int
    sealed_key: str
    preset: str
    engine: str
    aliases: tuple[str, ...]
    slots: int | None = None


@dataclass(frozen=True, slots=True)
class Failing:
    """A target that failed, and how often in a row."""

    count: int
    failed_at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class LaneFacts:
    """One lane with its order, its server and its claims."""

    slug: str
    is_enabled: bool
    is_unreachable: bool = False  # its host is
    pk: int = 0
    host_id: int = 0
    generation: int = 0
    target_id: int | None = None
    target: str | None = None
    ordered_at: datetime | None = None
    is_reload: bool = False
    fresh_from: int = 0
    is_fallback: bool = False
    server: Server | None = None
    failing: Failing | None = None  # of the target
    load_seconds: float | None = None  # of the target
    grants: tuple[Grant, ...] = ()


def read_lanes(now: datetime) -> list[LaneFacts]:
    """Every lane; six queries: lanes, servers, failures, bookings, and two of estimates."""
    rows = list(_lanes())
    servers, failures, grants = _servers(), _failures(), _grants(now)
    pairs = ((row["pk"], row["preset_id"]) for row in rows if row["preset_id"] is not None)
    seconds = load_estimates(pairs)
    return [
        LaneFacts(
            slug=row["slug"],
            is_enabled=row["enabled"],
            is_unreachable=row["unreachable_since"] is not None,
            pk=row["pk"],
            host_id=row["host_id"],
            generation=row["generation"] or 0,
            target_id=row["target_id"],
            target=row["target"],
            ordered_at=row["ordered_at"],
            is_reload=bool(row["is_reload"]),
            fresh_from=row["fresh_from"] or 0,
            is_fallback=bool(row["is_fallback"]),
            server=servers.get(row["pk"]),
            failing=failures.get((row["pk"], row["target_id"])),
            load_seconds=seconds.get((row["pk"], row["preset_id"])),
            grants=tuple(grants.get(row["pk"], ())),
        )
        for row in rows
    ]


def read_shares(now: datetime) -> dict[str, list[int]]:
    """Who may use the slots of others, by the booking's key; one query."""
    shared = BookingShare.objects.filter(
        booking__state=State.CONFIRMED,
        booking__end__gt=now - KEPT,
        booking__start__lt=_until(now),
    )
    people: dict[str, list[int]] = defaultdict(list)
    for booking, member in shared.order_by("pk").values_list("booking_id", "member_id"):
        people[str(booking)].append(member)
    return dict(people)


def _lanes() -> Iterable[Mapping[str, Any]]:
    """Lanes with their orders; a lane that has none yet has None for what that says."""
    return Lane.objects.order_by("pk").values(
        "pk",
        "slug",
        "enabled",
        "host_id",
        unreachable_since=F("host__unreachable_since"),
        generation=F("order__generation"),
        target_id=F("order__target"),
        preset_id=F("order__target__preset"),
        target=F("order__target__preset__slug"),
        ordered_at=F("order__ordered_at"),
        is_reload=F("order__is_reload"),
        fresh_from=F("order__fresh_from"),
        is_fallback=F("order__is_fallback"),
    )


def _servers() -> dict[int, Server]:
    alive = Runtime.objects.filter(ended_at__isnull=True).order_by("pk")
    rows = alive.values_list(
        "lane_id",
        "generation",
        "revision_id",
        "phase",
        "started_at",
        "drain_until",
        "address",
        "port",
        "sealed_key",
        "revision__preset__slug",
        "revision__engine",
        "slots",
        "revision__aliases",
    )
    return {row[0]: Server(*row[1:11], tuple(row[12]), row[11]) for row in rows}


def _failures() -> dict[tuple[int, int | None], Failing]:
    rows = PresetFailure.objects.filter(count__gt=0, failed_at__isnull=False)
    fields = ("lane_id", "revision_id", "count", "failed_at", "reason")
    return {(lane, revision): Failing(*rest) for lane, revision, *rest in rows.values_list(*fields)}


def _grants(now: datetime) -> dict[int, list[Grant]]:
    """The confirmed bookings of the next days, those in progress and those just over, by lane."""
    rows = Booking.objects.filter(state=State.CONFIRMED, end__gt=now - KEPT, start__lt=_until(now))
    # Of 20,000 rows most of the time goes into making times: the database finds the latest one.
    active_from = Greatest("start", "confirmed_at", Coalesce("owner_since", "start"))
    fields = ("lane_id", "pk", "owner_id", active_from, "end", "preset__slug")
    grants: dict[int, list[Grant]] = defaultdict(list)
    for lane, pk, owner, start, end, preset in rows.order_by("start").values_list(*fields):
        grants[lane].append(Grant(pk, owner, start.timestamp(), end.timestamp(), preset))
    return grants


def _until(now: datetime) -> datetime:
    """Before when a booking must begin to be in the table."""
    return now + timedelta(days=settings.SLOTSERVE_TABLE_DAYS)


def read_maintenance(now: datetime) -> dict[str, list[Closure]]:
    """The maintenance of the next days, what is in force and what is just over, by lane slug; one
    query."""
    lasting = Maintenance.objects.filter(Q(end=None) | Q(end__gt=now - KEPT), ended_at=None)
    fields = ("lane__slug", "start", "end", "reason")
    closures: dict[str, list[Closure]] = defaultdict(list)
    for slug, start, end, reason in lasting.filter(start__lt=_until(now)).values_list(*fields):
        closes = end.timestamp() if end is not None else None
        closures[slug].append(Closure(start.timestamp(), closes, reason))
    return closures
