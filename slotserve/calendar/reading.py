"""Reads for the calendar: lanes, bookings of a span, and what is known of loads."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, lru_cache
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.models import User
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, ExpressionWrapper, F, Func, Q, QuerySet, TextField, When
from django.db.models.sql.compiler import SQLCompiler

from bookings.models import Booking, Kind, State
from bookings.names import Names
from bookings.states import OCCUPYING
from lanes.maintenance import within
from lanes.models import Lane, Maintenance, ManualChoice, Preset, Runtime
from slotserve.calendar.entries import Booked, Entry
from slotserve.calendar.month import Held
from slotserve.calendar.spans import Span

ROWS_AT_ONCE = 2000
AS_TEXT = {"template": "CAST(%(expressions)s AS text)"}


class Kept(Func):
    """A moment as it is kept: SQLite's text, which is read here in a third of Django's time."""

    template = "%(expressions)s"
    output_field = TextField()

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, tuple[str | int, ...]]:
        """Without sqlite3's own reading of times."""
        return self.as_sql(compiler, connection, **context | AS_TEXT)


LATE = Case(When(confirmed_at__gt=F("start"), then=Kept("confirmed_at")))
COLUMNS = (
    "pk",
    "lane_id",
    Kept("start"),
    Kept("end"),
    LATE,
    "state",
    "kind",
    "owner_id",
    "preset_id",
)
NO_PRESET = (None, None)

Closed = tuple[Maintenance, datetime, datetime]  # with the times that it has or had


class Ran(NamedTuple):
    """A model server's row."""

    lane_id: int
    preset_id: int
    preset: str  # slug
    phase: str
    started_at: datetime
    ready_at: datetime | None
    drain_until: datetime | None
    ended_at: datetime | None


RAN_COLUMNS: tuple[str | Kept, ...] = (
    "lane_id",
    "revision__preset_id",
    "revision__preset__slug",
    "phase",
    *(Kept(name) for name in ("started_at", "ready_at", "drain_until", "ended_at")),
)


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads, and whose names they are shown."""

    user: User
    names: Names


@dataclass(frozen=True, slots=True)
class Sought:
    """Which lanes are shown: these slugs, if any, and those whose names have these words."""

    lanes: tuple[str, ...] = ()
    words: str = ""


def lanes_of(sought: Sought) -> list[Lane]:
    """The lanes by host and name; one query."""
    return list(sought_lanes(sought))


def sought_lanes(sought: Sought) -> QuerySet[Lane]:
    """The same, not asked yet."""
    found = Lane.objects.select_related("host", "default_preset").order_by("host__name", "name")
    if sought.lanes:
        found = found.filter(slug__in=sought.lanes)
    for word in sought.words.split():
        named = Q(name__icontains=word) | Q(slug__icontains=word) | Q(host__name__icontains=word)
        found = found.filter(named)
    return found


def reach() -> timedelta:
    """How far before a slot what was on the lane then can matter to its load."""
    longest = settings.SLOTSERVE_LOAD_TIMEOUT_SECONDS + 3 * settings.SLOTSERVE_BUFFER_SECONDS
    return timedelta(seconds=max(longest, settings.SLOTSERVE_MIN_PRELOAD_SECONDS))


def held(lanes: Collection[Lane], start: datetime, end: datetime) -> QuerySet[Booking]:
    """Bookings that hold some of [start, end) on these lanes, by start."""
    found = Booking.objects.filter(state__in=OCCUPYING, end__gt=start, start__lt=end)
    return found.filter(lane__in=[lane.pk for lane in lanes]).order_by("start", "pk")


def closed(lanes: Collection[Lane], start: datetime, end: datetime) -> list[Closed]:
    """Maintenance in [start, end) of these lanes by start, up to then; one query."""
    found = within(start, end, [lane.pk for lane in lanes]).order_by("start")
    return [(row, row.start, min(row.ended_at or end, row.end or end)) for row in found]


def closures_of(span: Span, sought: Sought) -> list[Maintenance]:
    """The same of lanes that are not read yet, with them; one query."""
    lanes = sought_lanes(sought).order_by().values("pk")
    return list(within(span.start, span.end, lanes).select_related("lane").order_by("start"))


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Bookings as they were read, without names: of whom, and with what."""

    rows: list[tuple[Any, ...]]
    owners: frozenset[int]
    presets: frozenset[int]


OwnerNames = tuple[tuple[int, str], ...]  # primary key, user name
PresetNames = tuple[tuple[int, str, str], ...]  # primary key, slug, name


def booked(found: QuerySet[Booking], now: datetime) -> list[Booked]:
    """The rows, without those that nobody approved in time; three queries: thousands of rows have
    few names, which the database would write out for each."""
    rows = _rows(found)
    return _named(rows, *_names(rows), now)


def booked_once(
    lanes: tuple[Lane, ...], start: datetime, end: datetime, now: datetime, digest: str
) -> list[Booked]:
    """The same of what is booked in [start, end), read once for all who look at it within a minute
    (`now`) as long as nothing was booked or happened to a lane (`digest`, read before) nor anything
    was renamed."""
    rows = rows_once(lanes, start, end, now, digest)
    return _named_once(rows, *_names(rows), now)


@lru_cache(maxsize=4)
def rows_once(
    lanes: tuple[Lane, ...], start: datetime, end: datetime, _now: datetime, _digest: str
) -> Rows:
    """One query, or none."""
    return _rows(held(lanes, start, end))


def _rows(found: QuerySet[Booking]) -> Rows:
    read = cache(moment)  # the same times recur
    rows = [
        (pk, lane, read(start), read(end), late and read(late), *said)
        for pk, lane, start, end, late, *said in found.values_list(*COLUMNS).iterator(ROWS_AT_ONCE)
    ]
    presets = {row[-1] for row in rows} - {None}
    return Rows(rows, frozenset(row[-2] for row in rows), frozenset(presets))


def _names(rows: Rows) -> tuple[OwnerNames, PresetNames]:
    """Of members and presets; two queries."""
    owners = User.objects.filter(pk__in=rows.owners).values_list("pk", "username")
    presets = Preset.objects.filter(pk__in=rows.presets).values_list("pk", "slug", "name")
    return tuple(owners.order_by("pk")), tuple(presets.order_by("pk"))


def _named(rows: Rows, owners: OwnerNames, presets: PresetNames, now: datetime) -> list[Booked]:
    who, what = dict(owners), {pk: names for pk, *names in presets}
    return [
        Booked._make((*row, who.get(row[-2], ""), *what.get(row[-1], NO_PRESET)))
        for row in rows.rows
        if row[5] != State.PENDING or row[3] > now
    ]


_named_once = lru_cache(maxsize=4)(_named)


def moment(kept: str | datetime) -> datetime:
    """What `Kept` gives."""
    return kept if isinstance(kept, datetime) else datetime.fromisoformat(f"{kept}+00:00")


def month_rows(found: QuerySet[Booking], now: datetime) -> Iterable[Held]:
    """What a month needs of what `booked` gives, in any order; one query. Read times by `moment`.

    The database says how each looks: thousands of rows are a third smaller by it.
    """
    looks = [Q(state=State.PENDING), Q(kind=Kind.GPU), Q(state=State.HELD)]
    pending, gpu, hold = (Case(When(asked, then=2**n), default=0) for n, asked in enumerate(looks))
    number = ExpressionWrapper(pending + gpu + hold, TextField())  # as it is, not converted
    rows = found.order_by().exclude(state=State.PENDING, end__lte=now)
    columns = ("lane_id", Kept("start"), Kept("end"), number)
    return rows.values_list(*columns).iterator(ROWS_AT_ONCE)


def entry_of(row: Booked, lane: str, reader: Reader, now: datetime) -> Entry:
    """A booking as this member may see it."""
    user = reader.user
    is_mine = row.owner_id == user.pk
    return Entry(
        pk=row.pk,
        lane=lane,
        start=row.start,
        end=row.end,
        who=reader.names.of(row.owner),
        what="" if row.kind == Kind.GPU else row.preset_name or "",
        is_mine=is_mine,
        is_pending=row.state == State.PENDING,
        is_held=row.state == State.HELD,
        is_editable=(is_mine or user.is_staff) and row.end > now and row.state != State.HELD,
        is_begun=row.state == State.CONFIRMED and (row.late or row.start) <= now,
    )


def choices(lanes: Sequence[Lane], now: datetime) -> dict[int, ManualChoice]:
    """Administrators' choices in force, by lane; one query."""
    found = ManualChoice.objects.filter(lane__in=lanes, ended_at=None, until__gt=now)
    return {choice.lane_id: choice for choice in found.select_related("preset")}


def runtimes(lanes: Sequence[Lane], start: datetime, end: datetime) -> list[Ran]:
    """Model servers that ran in [start, end), and those that run; one query."""
    lives = Q(ended_at=None)
    found = Runtime.objects.filter(lives | Q(ended_at__gt=start), lives | Q(started_at__lt=end))
    found = found.filter(lane__in=lanes).order_by("started_at")
    return [
        Ran._make((*row[:4], *(each and moment(each) for each in row[4:])))
        for row in found.values_list(*RAN_COLUMNS)
    ]
