"""A month as its page shows it: a table of lanes and days."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from itertools import groupby

from django.contrib.auth.models import User
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from bookings.wall_clock import DAY, day_start
from lanes.models import Lane
from slotserve.calendar import reading
from slotserve.calendar.month import UNITS, Cell, Look, Row, month
from slotserve.calendar.reading import Sought
from slotserve.calendar.spans import Span

HIGH = 12  # of a strip
OTHERS_FROM = 5  # bookings of others are lower than one's own
RAIL = 2  # a whole GPU is two lines


@dataclass(frozen=True, slots=True)
class Head:
    """A day: its date, weekday and name, and what its column is (past, today, weekend)."""

    day: date
    weekday: str
    name: str
    kind: str
    query: str  # of its page


@dataclass(frozen=True, slots=True)
class Shown:
    """A lane's day: hours booked with signs, and all of it in words."""

    place: str  # where it leads: the day's page, at the lane
    said: str
    words: str


@dataclass(frozen=True, slots=True)
class Line:
    """A lane: its days, and a path for each kind of its bookings."""

    lane: Lane
    cells: list[Shown]
    paths: list[tuple[str, str]]  # class, SVG path


@dataclass(frozen=True, slots=True)
class Month:
    """The table; `width` of its strips."""

    heads: list[Head]
    hosts: list[tuple[str, list[Line]]]
    width: int


def month_page(span: Span, sought: Sought, user: User, now: datetime, query: str) -> Month:
    """The month of a span; two queries. `query`: of a day's page, but for the day."""
    lanes = reading.lanes_of(sought)
    rows = reading.booked(reading.held(lanes, span.start, span.end), now)
    days = [day_start(span.first + n * DAY, span.zone) for n in range(span.days + 1)]
    found = month(rows, user.pk, days)
    heads = _heads(span, now, query)
    lines = _lines(lanes, found, heads)
    grouped = groupby(lines, lambda line: line.lane.host.name)
    return Month(heads, [(host, list(group)) for host, group in grouped], UNITS * span.days)


def _heads(span: Span, now: datetime, query: str) -> list[Head]:
    today = now.astimezone(span.zone).date()
    return [_head(span.first + n * DAY, today, query) for n in range(span.days)]


def _head(day: date, today: date, query: str) -> Head:
    kind = "today" if day == today else "past" if day < today else ""
    if day.weekday() >= 5:
        kind = f"{kind} weekend"
    name = date_format(day, "j F")
    return Head(day, date_format(day, "D"), name, kind, f"{query}&date={day.isoformat()}")


def _lines(lanes: Sequence[Lane], found: Mapping[int, Row], heads: Sequence[Head]) -> list[Line]:
    say = cache(_words)
    empty = Row([Cell() for _ in heads])
    lines = []
    for lane in lanes:
        row = found.get(lane.pk, empty)
        cells = [
            _shown(lane, head, say(cell.facts)) for cell, head in zip(row.cells, heads, strict=True)
        ]
        paths = [(_kind(look), _path(look, parts)) for look, parts in row.stretches.items()]
        lines.append(Line(lane, cells, paths))
    return lines


def _shown(lane: Lane, head: Head, said: tuple[str, str]) -> Shown:
    seen, words = said
    return Shown(f"{head.query}#{lane.slug}", seen, f"{lane.name}, {head.name}: {words}")


def _words(facts: tuple[int, float, int, int, int]) -> tuple[str, str]:
    """What stands in a cell, and the same in words."""
    count, hours, mine, pending, gpu = facts
    if not count:
        return "", _("free")
    number = number_format(hours, decimal_pos=0 if hours >= 10 else 1)
    parts = [
        ngettext("%(count)s booking", "%(count)s bookings", count) % {"count": count},
        _("%(hours)s hours booked") % {"hours": number},
    ]
    if mine:
        parts.append(_("%(count)s of them yours") % {"count": mine})
    if pending:
        said = ngettext("%(count)s waits for approval", "%(count)s wait for approval", pending)
        parts.append(said % {"count": pending})
    if gpu:
        parts.append(_("%(count)s of the whole GPU") % {"count": gpu})
    signs = "".join(s for s, n in (("★", mine), ("?", pending), ("▣", gpu)) if n)
    return f"{number} {signs}".rstrip(), ", ".join(parts)


def _kind(look: Look) -> str:
    kinds = ["mine" if look.is_mine else "other"]
    kinds += ["pending"] if look.is_pending else []
    kinds += ["gpu"] if look.is_gpu else []
    return " ".join(kinds)


def _path(look: Look, parts: Sequence[tuple[int, int]]) -> str:
    top = 0 if look.is_mine else OTHERS_FROM
    bars = [(top, RAIL), (HIGH - RAIL, RAIL)] if look.is_gpu else [(top, HIGH - top)]
    return "".join(
        f"M{start} {y}h{end - start}v{height}h{start - end}z"
        for start, end in parts
        for y, height in bars
    )
