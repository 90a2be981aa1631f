"""What is so now, for all lanes at once, in a fixed number of queries. Reads only."""

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import cast

import redis
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db.models import Count, Max

from bookings.models import Booking, Waiting
from lanes import clock, ticks
from lanes.announcements import in_force
from lanes.models import Gpu, Host, JoinToken, LaneEvent, Notice
from slotserve.gpus import SILENT_AFTER
from slotserve.live.state import Figures, State, digest_of
from slotserve.overview import LaneOverview, lanes_for_people, overviews
from slotserve.web.announcements import banner_digest
from slotserve.web.notices import standing_digest
from wire.edges import EDGES, SILENT_AFTER_SECONDS, EdgeReport, decode_report

NEWEST_EVENTS = 50  # more than are under way at once
HOSTS_FRESH = timedelta(seconds=10)  # hosts look more often than their page need show


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who listens, by what they came with."""

    user: int
    session: str
    password: str  # its hash; another one ends the sessions that came before
    is_staff: bool


@dataclass(frozen=True, slots=True)
class Look:
    """What was found: for everybody, for each person, and who may listen no more."""

    state: State
    unread: dict[int, int] = field(default_factory=dict)  # notices, by user
    barred: frozenset[Visitor] = frozenset()


def look(visitors: Collection[Visitor], *, is_check: bool) -> Look:
    """Look at all facts, and with `is_check` also at who may listen; about nineteen queries."""
    unread = _unread({visitor.user for visitor in visitors})
    return Look(read_state(), unread, barred(visitors) if is_check else frozenset())


def read_state() -> State:
    """Topics and figures. Without Valkey nobody knows what is in flight."""
    now = clock.database_now()
    views = overviews(lanes_for_people().order_by("name"), now, User())
    cards = {view.lane.slug: view.lane.gpus.all() for view in views}
    topics = {
        "lanes": lanes_digest(view.lane.slug for view in views),
        "notice": standing_digest(now),
        "banner": banner_digest(list(in_force(now))),
        "minute": minute_digest(now),
        "bookings": bookings_digest(),
        "hosts": _hosts(now),
    }
    topics |= {f"lane:{view.lane.slug}": view.digest for view in views}
    topics |= {f"gpus:{slug}": cards_digest(rows, now) for slug, rows in cards.items() if rows}
    return State(topics, _figures(views))


def lanes_digest(slugs: Iterable[str]) -> str:
    """Of which lanes there are."""
    return digest_of(*sorted(slugs))


def minute_digest(now: datetime) -> str:
    """Of the minute, for what ends by itself."""
    return digest_of(now.timestamp() // 60)


def cards_digest(cards: Iterable[Gpu], now: datetime) -> str:
    """Of a lane's cards: when each was read, and whether that is long ago."""
    times = sorted((card.pk, _read_at(card)) for card in cards)
    silent = [at is None or at < now - SILENT_AFTER for _, at in times]
    return digest_of(*times, *silent)


def bookings_digest() -> str:
    """Of all bookings, and of who waits for time: what is done to a booking, or happens to a lane,
    adds an event; three queries. One that is committed late has a lower number than the newest."""
    events = LaneEvent.objects.order_by("-pk").values_list("pk", flat=True)[:NEWEST_EVENTS]
    waiting = Waiting.objects.aggregate(newest=Max("pk"), left=Max("left_at"))
    newest = Booking.objects.aggregate(newest=Max("pk"))["newest"]
    return digest_of(*events, newest, waiting["newest"], waiting["left"])


def barred(visitors: Collection[Visitor]) -> frozenset[Visitor]:
    """Those whose session has ended, or whose account is not what it was; two queries."""
    now = clock.database_now()
    keys = {visitor.session for visitor in visitors}
    sessions = Session.objects.filter(session_key__in=keys, expire_date__gt=now)
    alive = set(sessions.values_list("session_key", flat=True))
    users = User.objects.filter(pk__in={visitor.user for visitor in visitors}, is_active=True)
    accounts = set(users.values_list("pk", "password", "is_staff"))
    return frozenset(
        visitor
        for visitor in visitors
        if visitor.session not in alive
        or (visitor.user, visitor.password, visitor.is_staff) not in accounts
    )


def _unread(users: Collection[int]) -> dict[int, int]:
    rows = Notice.objects.filter(recipient__in=users, read_at=None).order_by()
    return dict(rows.values_list("recipient").annotate(Count("pk")))


def _read_at(card: Gpu) -> datetime | None:
    state = getattr(card, "state", None)
    return state.read_at if state else None


def _hosts(now: datetime) -> str:
    rows = Host.objects.values_list("pk", "name", "address", "unreachable_since", "seen_at")
    hosts = [
        (*row[:4], row[4] and row[4].timestamp() // HOSTS_FRESH.total_seconds()) for row in rows
    ]
    tokens = JoinToken.objects.filter(made_at__gt=now - timedelta(days=31))
    return digest_of(hosts, list(tokens.order_by("pk").values_list("pk", "used_at", "revoked_at")))


def _figures(views: Iterable[LaneOverview]) -> dict[str, Figures]:
    reports = _reports()
    return {
        view.lane.slug: _traffic(view.lane.slug, reports) | asdict(view.memory) for view in views
    }


def _traffic(slug: str, reports: list[EdgeReport] | None) -> dict[str, int | None]:
    if reports is None:
        return {"in_flight": None, "waiting": None}
    counts = [report.lanes[slug] for report in reports if slug in report.lanes]
    return {
        "in_flight": sum(count.in_flight for count in counts),
        "waiting": sum(count.waiting for count in counts),
    }


def _reports() -> list[EdgeReport] | None:
    """Of the edges that live; None: Valkey does not answer."""
    try:
        valkey = ticks.valkey()
        now_ms = valkey.time()[0] * 1000
        raw = cast(dict[bytes, bytes], valkey.hgetall(EDGES))
    except redis.RedisError:
        return None
    found = (decode_report(name.decode(), payload) for name, payload in raw.items())
    oldest = now_ms - SILENT_AFTER_SECONDS * 1000
    return [report for report in found if report and not report.goodbye and report.at_ms > oldest]
