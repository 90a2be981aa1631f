"""Usage for people: sums of what was worked out by day, and bookings that computed little."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import date, datetime

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import F, Max, Q, QuerySet, Sum

from bookings.models import Booking
from gateway.models import UsageDay

LEAST_HELD_SECONDS = 600.0  # a booking that was held shorter is no waste worth a word
LEAST_SHARE = 0.1  # of the time held: one that used less was held without computing
SHOWN = 50
BY = {  # what usage may be divided by: the columns that tell one group from another, then its name
    "day": ("day",),
    "member": ("owner_id_for", "owner_name"),
    "lane": ("lane_id_for", "lane_name"),
    "preset": ("preset",),
}


@dataclass(frozen=True, slots=True)
class Question:
    """Whose and which usage, from one day of the site's zone through another; empty: all."""

    first: date
    last: date
    member: str = ""
    lane_id: int | None = None
    preset: str = ""


@dataclass(frozen=True, slots=True)
class Sums:
    """Seconds and counts of some rows."""

    used: float = 0.0
    loading: float = 0.0
    idle: float = 0.0
    unmeasured: float = 0.0
    requests: int = 0
    refused: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def booked(self) -> float:
        """Seconds of bookings."""
        return self.used + self.loading + self.idle + self.unmeasured

    @property
    def tokens(self) -> int:
        """Of prompts and answers."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def used_share(self) -> float | None:
        """Of the time that can be measured, 0 to 1; None: there is none."""
        measured = self.booked - self.unmeasured
        return self.used / measured if measured else None

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(*(getattr(self, name) + getattr(other, name) for name in _NAMES))


@dataclass(frozen=True, slots=True)
class Group:
    """The usage of one day, member, lane or preset."""

    name: str  # empty: no lane was asked, or nothing answered
    sums: Sums
    day: date | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A booking that used little of its time, in names and values: it may be kept."""

    booking: int  # primary key
    start: datetime
    end: datetime
    lane: str  # name
    preset: str | None  # slug; None: the whole GPU
    member: str  # user name
    sums: Sums


_NAMES = tuple(each.name for each in fields(Sums))
_COLUMNS = {name: f"{name}_seconds" for name in ("used", "loading", "idle", "unmeasured")}
_SUMS = {f"sum_{name}": Sum(_COLUMNS.get(name, name)) for name in _NAMES}
_TIMES = {f"sum_{name}": Sum(column) for name, column in _COLUMNS.items()}


def rows_of(viewer: User | AnonymousUser, question: Question) -> QuerySet[UsageDay]:
    """The rows that the viewer may see and asks for."""
    rows = UsageDay.objects.visible_to(viewer)
    rows = rows.filter(day__gte=question.first, day__lte=question.last)
    if question.member:
        rows = rows.filter(owner_id_for__in=_called(question.member))
    if question.lane_id is not None:
        rows = rows.filter(lane_id_for=question.lane_id)
    if question.preset:
        rows = rows.filter(preset=question.preset)
    return rows.order_by()


def _called(name: str) -> list[int]:
    """Primary keys of whom it is the name, else of all whose name it was; one or two queries."""
    found = User.objects.filter(username=name).values_list("pk", flat=True)
    once = (
        UsageDay.objects.filter(owner_name=name).order_by().values_list("owner_id_for", flat=True)
    )
    return list(found) or list(once.distinct())


def grouped(viewer: User | AnonymousUser, question: Question, by: str) -> list[Group]:
    """The usage by day, oldest first, or by member, lane or preset, the longest held first; one
    query. What was renamed meanwhile has its last name."""
    columns = BY[by]
    found = rows_of(viewer, question).values_list(*columns).annotate(until=Max("day"), **_SUMS)
    groups = dict[object, Group]()
    for row in sorted(found, key=lambda row: (row[len(columns)], str(row[len(columns) - 1]))):
        name, sums = row[len(columns) - 1], Sums(*row[len(columns) + 1 :])
        if row[0] in groups:
            sums += groups[row[0]].sums
        groups[row[0]] = Group(str(name), sums, day=name if isinstance(name, date) else None)
    if by == "day":
        return list(groups.values())
    return sorted(
        groups.values(), key=lambda group: (-group.sums.booked, -group.sums.tokens, group.name)
    )


def total(groups: list[Group]) -> Sums:
    """All of them together."""
    return sum((group.sums for group in groups), start=Sums())


def held_without_computing(viewer: User | AnonymousUser, question: Question) -> list[Held]:
    """Bookings that used less than a tenth of ten minutes or more, the most idle first, and their
    times; two queries."""
    rows = rows_of(viewer, question).filter(booking_id_for__gt=0)
    measured = F("sum_used") + F("sum_loading") + F("sum_idle")
    found = (
        rows.values_list("booking_id_for")
        .annotate(**_TIMES)
        .filter(Q(sum_used__lt=measured * LEAST_SHARE))
        .annotate(held=measured)
        .filter(held__gte=LEAST_HELD_SECONDS)
        .order_by(F("sum_idle").desc(), "-booking_id_for")[:SHOWN]
    )
    sums = {row[0]: Sums(*row[1 : 1 + len(_TIMES)]) for row in found}
    columns = ("pk", "start", "end", "lane__name", "preset__slug", "owner__username")
    bookings = Booking.objects.order_by().filter(pk__in=list(sums)).values_list(*columns)
    held = {
        pk: Held(pk, start, end, lane, preset, member, sums[pk])
        for pk, start, end, lane, preset, member in bookings
    }
    return [held[pk] for pk in sums if pk in held]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the finest table: a day of a member on a lane with a preset."""

    day: date
    member: str
    lane: str
    preset: str
    sums: Sums


def lines(viewer: User | AnonymousUser, question: Question) -> Iterator[list[Line]]:
    """Every day's lines, the oldest first; a query a day, so that no cursor stays open for as long
    as somebody takes to read."""
    rows = rows_of(viewer, question)
    for day in list(rows.order_by("day").values_list("day", flat=True).distinct()):
        found = rows.filter(day=day).values_list("owner_name", "lane_name", "preset")
        ordered = found.annotate(**_SUMS).order_by("owner_name", "lane_name", "preset")
        yield [Line(day, row[0], row[1], row[2], Sums(*row[3:])) for row in ordered]
