"""A month as its page shows it: a table of lanes and days."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from itertools import groupby, pairwise

from django.contrib.auth.models import User
from django.core.cache import caches
from django.utils.formats import date_format, number_format
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from bookings.wall_clock import DAY, day_start
from lanes.models import Lane, Maintenance
from slotserve.calendar import reading
from slotserve.calendar.month import UNITS, Cell, Facts, Look, Row, month_row, tallies
from slotserve.calendar.reading import Sought
from slotserve.calendar.spans import Span
from slotserve.live.state import digest_of

KEPT_SECONDS = 60  # what is the same for all readers, as long as nothing is booked or changed
HIGH = 12  # of a strip
OTHERS_FROM = 5  # bookings of others are lower than one's own
RAIL = 2  # a whole GPU is two lines
CLOSED = "⚒"


@dataclass(frozen=True, slots=True)
class Head:
    """A day: its date, weekday and name, and what its column is (past, today, weekend)."""

    day: date
    weekday: str
    name: str
    kind: str
    query: str  # of its page


@dataclass(frozen=True, slots=True)
class Line:
    """A lane: its first day's link and the cells of the others in HTML, and a path for each kind of
    its bookings."""

    lane: Lane
    first: SafeString
    others: SafeString
    paths: list[tuple[str, str]]  # class, SVG path


@dataclass(frozen=True, slots=True)
class Month:
    """The table; `width` of its strips."""

    heads: list[Head]
    hosts: list[tuple[str, list[Line]]]
    width: int


@dataclass(frozen=True, slots=True)
class Asked:
    """`query`: of a day's page, but for the day; `digest`: of all bookings, read before them."""

    query: str
    digest: str
    closures: Sequence[Maintenance] = ()  # in the month


def month_page(span: Span, sought: Sought, user: User, now: datetime, asked: Asked) -> Month:
    """The month of a span; three queries, or two where all bookings were read within a minute."""
    lanes = reading.lanes_of(sought)
    days = [day_start(span.first + n * DAY, span.zone) for n in range(span.days + 1)]
    held = reading.held(lanes, span.start, span.end)
    name = digest_of(
        *("month", asked.digest, int(now.timestamp()) // KEPT_SECONDS),
        *(day.timestamp() for day in days),
        *(lane.pk for lane in lanes),
    )
    found = caches["sums"].get(name)
    if found is None:
        found = tallies(reading.month_rows(held, now), days, reading.moment)
        caches["sums"].set(name, found, KEPT_SECONDS)
    own = tallies(reading.month_rows(held.filter(owner=user), now), days, reading.moment)
    rows = {lane: month_row(tally, own.get(lane)) for lane, tally in found.items()}
    heads = _heads(span, now, asked.query)
    lines = _lines(lanes, rows, heads, _closed(asked.closures, days))
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


def _closed(closures: Sequence[Maintenance], days: Sequence[datetime]) -> set[tuple[int, int]]:
    """Lanes and days that have maintenance."""
    found = set()
    for row in closures:
        end = min(each for each in (row.ended_at, row.end, days[-1]) if each)
        for day, (begins, ends) in enumerate(pairwise(days)):
            if row.start < ends and end > begins:
                found.add((row.lane_id, day))
    return found


def _lines(
    lanes: Sequence[Lane],
    found: Mapping[int, Row],
    heads: Sequence[Head],
    closed: Container[tuple[int, int]],
) -> list[Line]:
    say = cache(_Words().said)
    empty = Row([Cell() for _ in heads])
    begun = [(escape(head.query), escape(head.name)) for head in heads]
    lines = []
    for lane in lanes:
        row, name, place = found.get(lane.pk, empty), escape(lane.name), escape(lane.slug)
        links = [
            _link(f"{query}#{place}", f"{name}, {day}: {words}", seen, is_closed=is_closed)
            for number, (cell, (query, day)) in enumerate(zip(row.cells, begun, strict=True))
            for is_closed in [(lane.pk, number) in closed]
            for seen, words in [say(cell.facts, is_closed)]
        ]
        paths = [(_kind(*look), _path(*look, parts)) for look, parts in row.stretches.items()]
        others = "".join(f"<td>{link}</td>" for link in links[1:])
        lines.append(Line(lane, mark_safe(links[0]), mark_safe(others), paths))  # noqa: S308
    return lines


def _link(place: str, words: str, seen: str, *, is_closed: bool) -> str:
    """A day of a lane: where it leads, all of it in words, and what is seen. Of escaped text; there
    are so many that a template would take most of the page's time."""
    kind = ' class="closed"' if is_closed else ""
    return f'<a{kind} href="?{place}" title="{words}"><b aria-hidden="true">{seen}</b></a>'


class _Words:
    """What stands in a cell, and the same in words; each in the language in force, escaped."""

    def __init__(self) -> None:
        self._booked, self._mine = _("%(hours)s hours booked"), _("%(count)s of them yours")
        self._gpu, self._free = _("%(count)s of the whole GPU"), _("free")
        self._held, self._closed = _("%(count)s held for whoever waited"), _("maintenance")
        self._bookings, self._number = cache(_bookings), cache(_number)

    def said(self, facts: Facts, is_closed: bool) -> tuple[str, str]:
        """Of a cell's facts, and whether it has maintenance."""
        closed = [self._closed] if is_closed else []
        if not facts.bookings:
            return CLOSED if is_closed else "", escape(", ".join(closed) or self._free)
        number = self._number(facts.hours)
        signs = [("★", facts.mine), ("?", facts.pending), ("◔", facts.held), ("▣", facts.gpu)]
        marks = "".join(sign for sign, count in [*signs, (CLOSED, is_closed)] if count)
        words = [*self._counted(facts, number), *closed]
        return escape(f"{number} {marks}".rstrip()), escape(", ".join(words))

    def _counted(self, facts: Facts, number: str) -> Iterator[str]:
        yield self._bookings(facts.bookings)
        yield self._booked % {"hours": number}
        if facts.mine:
            yield self._mine % {"count": facts.mine}
        if facts.pending:
            yield _waiting(facts.pending)
        counted = (self._held, facts.held), (self._gpu, facts.gpu)
        yield from (words % {"count": count} for words, count in counted if count)


def _number(hours: float) -> str:
    return str(number_format(hours, decimal_pos=0 if hours >= 10 else 1))


def _bookings(count: int) -> str:
    return ngettext("%(count)s booking", "%(count)s bookings", count) % {"count": count}


def _waiting(count: int) -> str:
    said = ngettext("%(count)s waits for approval", "%(count)s wait for approval", count)
    return said % {"count": count}


def _kind(is_mine: bool, look: Look) -> str:
    kinds = ["mine" if is_mine else "other"]
    kinds += ["pending"] if look.is_pending else []
    kinds += ["held"] if look.is_held else []
    kinds += ["gpu"] if look.is_gpu else []
    return " ".join(kinds)


def _path(is_mine: bool, look: Look, parts: Sequence[tuple[int, int]]) -> str:
    top = 0 if is_mine else OTHERS_FROM
    bars = [(top, RAIL), (HIGH - RAIL, RAIL)] if look.is_gpu else [(top, HIGH - top)]
    return "".join(
        f"M{start} {y}h{end - start}v{height}h{start - end}z"
        for start, end in parts
        for y, height in bars
    )
