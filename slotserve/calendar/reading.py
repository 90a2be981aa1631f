"""Reads for the calendar: lanes, bookings of a span, and what is known of loads."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from bookings.models import Booking, Kind, State
from bookings.states import OCCUPYING
from lanes.models import Lane, ManualChoice, Runtime
from slotserve.calendar.condensing import Entry

COLUMNS = (
    "pk",
    "lane_id",
    "start",
    "end",
    "owner_id",
    "owner__username",
    "kind",
    "preset__slug",
    "preset__name",
    "state",
    "confirmed_at",
    "preset_id",
)


@dataclass(frozen=True, slots=True)
class Booked:
    """A booking's row, as COLUMNS has it."""

    pk: int
    lane_id: int
    start: datetime
    end: datetime
    owner_id: int
    owner: str
    kind: str
    preset: str | None  # slug
    preset_name: str | None
    state: str
    confirmed_at: datetime | None
    preset_id: int | None


@dataclass(frozen=True, slots=True)
class Sought:
    """Which lanes are shown: these slugs, if any, and those whose names have these words."""

    lanes: tuple[str, ...] = ()
    words: str = ""


def lanes_of(sought: Sought) -> list[Lane]:
    """The lanes by host and name; one query."""
    found = Lane.objects.select_related("host", "default_preset").order_by("host__name", "name")
    if sought.lanes:
        found = found.filter(slug__in=sought.lanes)
    for word in sought.words.split():
        named = Q(name__icontains=word) | Q(slug__icontains=word) | Q(host__name__icontains=word)
        found = found.filter(named)
    return list(found)


def reach() -> timedelta:
    """How far before a slot what was on the lane then can matter to its load."""
    longest = settings.SLOTSERVE_LOAD_TIMEOUT_SECONDS + 3 * settings.SLOTSERVE_BUFFER_SECONDS
    return timedelta(seconds=max(longest, settings.SLOTSERVE_MIN_PRELOAD_SECONDS))


def held(lanes: Collection[Lane], start: datetime, end: datetime) -> QuerySet[Booking]:
    """Bookings that hold some of [start, end) on these lanes, by start."""
    found = Booking.objects.filter(state__in=OCCUPYING, end__gt=start, start__lt=end)
    return found.filter(lane__in=[lane.pk for lane in lanes]).order_by("start", "pk")


def booked(found: QuerySet[Booking], now: datetime) -> list[Booked]:
    """The rows, without those that nobody approved in time; one query."""
    rows = (Booked(*row) for row in found.values_list(*COLUMNS))
    return [row for row in rows if row.state != State.PENDING or row.end > now]


def entry_of(row: Booked, lane: str, user: User, now: datetime) -> Entry:
    """A booking as this member may see it."""
    is_mine = row.owner_id == user.pk
    active_from = max(row.start, row.confirmed_at) if row.confirmed_at else row.start
    return Entry(
        pk=row.pk,
        lane=lane,
        start=row.start,
        end=row.end,
        who=shown_name(row.owner, user),
        what="" if row.kind == Kind.GPU else row.preset_name or "",
        is_mine=is_mine,
        is_pending=row.state == State.PENDING,
        is_editable=(is_mine or user.is_staff) and row.end > now,
        is_begun=row.state == State.CONFIRMED and active_from <= now,
    )


def shown_name(username: str, user: User) -> str:
    """Whom the calendar names to this member: everybody, as the calendar is shared."""
    return username if user.is_authenticated else ""


def choices(lanes: Sequence[Lane], now: datetime) -> dict[int, ManualChoice]:
    """Administrators' choices in force, by lane; one query."""
    found = ManualChoice.objects.filter(lane__in=lanes, ended_at=None, until__gt=now)
    return {choice.lane_id: choice for choice in found.select_related("preset")}


def runtimes(lanes: Sequence[Lane], start: datetime, end: datetime) -> list[Runtime]:
    """Model servers that ran in [start, end), and those that run; one query."""
    ran = Q(started_at__lt=end) & (Q(ended_at__gt=start) | Q(ended_at=None))
    found = Runtime.objects.filter(ran | Q(ended_at=None), lane__in=lanes)
    return list(found.select_related("revision__preset").order_by("started_at"))
