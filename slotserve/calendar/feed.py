"""A span of the calendar as the page's script draws it: times on the viewer's wall, no offsets."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from operator import attrgetter
from typing import Any

from django.utils.translation import gettext as _

from bookings.wall_clock import wall_of
from bookings.warmth import Band
from lanes.models import Lane
from slotserve.calendar import reading, words
from slotserve.calendar.condensing import condense
from slotserve.calendar.entries import Block, Booked, Entry
from slotserve.calendar.reading import Closed, Reader, Sought
from slotserve.calendar.spans import Span, View, offset_words
from slotserve.calendar.telling import Teller
from slotserve.calendar.warming import lane_bands
from slotserve.live.reading import bookings_digest

SHORTEST = timedelta(minutes=15)  # shown, where a clock set back hides a booking's length
MOST_HANDLES = 300  # of a month; closer views have all
SHORTEST_BAND = {
    View.HOURS: timedelta(),
    View.DAY: timedelta(),
    View.WEEK: timedelta(minutes=5),
}


def feed(span: Span, sought: Sought, reader: Reader, now: datetime) -> dict[str, Any]:
    """Lanes, bookings and bands of a day or week; twelve queries, or eleven where all bookings
    were read within the minute. What is shown by itself is said one by one: thousands of bookings
    are read and put together as tuples."""
    digest, lanes = bookings_digest(), reading.lanes_of(sought)
    start, end, margin = span.start, span.end, reading.reach()
    rows = reading.booked_once(tuple(lanes), start - margin, end + margin, now, digest)
    inside = [row for row in rows if row.end > start and row.start < end]
    shown = list(condense(sorted(inside, key=attrgetter("lane_id")), reader.user.pk, span))
    known = _bearing(rows, shown, span)
    closed = reading.closed(lanes, start - margin, end + margin)
    bands = lane_bands(lanes, known, closed, (start, end), now)
    pen = _Pen(span, reader, now, {lane.pk: lane for lane in lanes}, Teller(span.zone))
    return {
        **_frame(span, now),
        "lanes": [_lane(lane) for lane in lanes],
        "events": _events(shown, pen, of_slots(bands)),
        "bands": [*_closed(closed, pen), *_bands(bands, shown, pen)],
    }


def handles(span: Span, sought: Sought, reader: Reader, now: datetime) -> dict[str, Any]:
    """Lanes, and the bookings that the reader can move, of a month; four queries. It is drawn
    without them: they are what is dragged."""
    lanes = reading.lanes_of(sought)
    found = reading.held(lanes, span.start, span.end).filter(end__gt=now)
    user = reader.user
    mine = found if user.is_staff else found.filter(owner=user)
    pen = _Pen(span, reader, now, {lane.pk: lane for lane in lanes}, Teller(span.zone))
    return {
        **_frame(span, now),
        "lanes": [_lane(lane) for lane in lanes],
        "events": _events(reading.booked(mine[:MOST_HANDLES], now), pen, {}),
    }


@dataclass(frozen=True, slots=True)
class _Pen:
    """What is needed to say anything."""

    span: Span
    reader: Reader
    now: datetime
    lanes: Mapping[int, Lane]
    teller: Teller


def _bearing(rows: Iterable[Booked], shown: Iterable[Booked | Block], span: Span) -> list[Booked]:
    """What bears on bands that are shown, by start: of a block, within which none are, its ends."""
    start, end = span.start, span.end
    around = [row for row in rows if row.end <= start or row.start >= end]
    within = chain.from_iterable(_ends(one) for one in shown)
    return sorted([*around, *within], key=attrgetter("start"))


def _ends(one: Booked | Block) -> Sequence[Booked]:
    """One that has the whole time of a block, if the same preset is loaded at both its ends."""
    if not isinstance(one, Block):
        return (one,)
    first, last = one.first, one.last
    if (first.preset_id, first.state) == (last.preset_id, last.state):
        return (first._replace(end=last.end),)
    return first, last


def _frame(span: Span, now: datetime) -> dict[str, Any]:
    return {
        "view": span.view.value,
        "date": span.day.isoformat(),
        "first": span.first.isoformat(),
        "last": span.last.isoformat(),
        "previous": span.previous.isoformat(),
        "following": span.following.isoformat(),
        "title": words.title(span),
        "offset": offset_words(now, span.zone),
        "now": _wall(now, span),
        "notes": words.notes(span),
    }


def _lane(lane: Lane) -> dict[str, Any]:
    name = lane.name if lane.enabled else _("%(lane)s (disabled)") % {"lane": lane.name}
    return {"id": lane.slug, "name": name, "host": lane.host.name, "enabled": lane.enabled}


def _events(
    shown: Iterable[Booked | Block], pen: _Pen, ahead: Mapping[int | None, list[Band]]
) -> list[dict[str, Any]]:
    """By start; each says when its model is warm."""
    said = []
    for one in sorted(shown, key=attrgetter("start", "lane_id")):
        lane = pen.lanes[one.lane_id]
        if isinstance(one, Block):
            said.append(_said(one, lane, pen, key=f"{lane.slug}-{pen.teller.exact(one.start)}"))
            continue
        entry = reading.entry_of(one, lane.slug, pen.reader, pen.now)
        event = _said(entry, lane, pen, key=str(entry.pk))
        if spoken := pen.teller.warm(ahead.get(entry.pk, ()), entry.start):
            event["label"] += f", {spoken}"
        if entry.is_editable:
            moments = pen.teller.exact(one.start), pen.teller.exact(one.end)
            event["seen"] = {"start": moments[0], "end": moments[1], "lane": lane.slug}
            event["begun"] = entry.is_begun
        said.append(event)
    return said


def of_slots(bands: Mapping[int, list[Band]]) -> dict[int | None, list[Band]]:
    """The bands of each booking, by its primary key."""
    found = defaultdict(list)
    for band in chain.from_iterable(bands.values()):
        found[band.booking_id].append(band)
    return found


def _said(one: Entry | Block, lane: Lane, pen: _Pen, *, key: str) -> dict[str, Any]:
    start, end = pen.teller.wall(one.start), pen.teller.wall(one.end)
    if end <= start:
        end = (datetime.fromisoformat(start) + SHORTEST).isoformat()
    return {
        "id": key,
        "lane": lane.slug,
        "start": start,
        "end": end,
        "title": pen.teller.title(one),
        "label": pen.teller.label(one, lane.name),
        "kinds": _kinds(one),
    }


def _kinds(entry: Entry | Block) -> list[str]:
    """What tells it from others, by the names that the style sheet knows."""
    if isinstance(entry, Block):
        return ["block"]
    kinds = ["mine" if entry.is_mine else "other"]
    if entry.is_pending or entry.is_held:
        kinds.append("pending" if entry.is_pending else "held")
    if not entry.what:
        kinds.append("gpu")
    return kinds


def _bands(
    bands: Mapping[int, list[Band]], shown: Iterable[Booked | Block], pen: _Pen
) -> list[dict[str, Any]]:
    hidden = defaultdict(list)
    for one in shown:
        if isinstance(one, Block):
            hidden[one.lane_id].append(one)
    return [
        _band(band, pen.lanes[pk].slug, pen)
        for pk, found in bands.items()
        for band in _legible(found, pen.span.view, hidden[pk])
    ]


def _legible(bands: Iterable[Band], view: View, hidden: Sequence[Block]) -> Iterator[Band]:
    """Those that are wide enough to be seen, and not of bookings that are put together. A lane's
    blocks follow each other."""
    starts = [block.start for block in hidden]
    for band in bands:
        before = bisect_right(starts, band.end) - 1
        is_hidden = before >= 0 and hidden[before].end >= band.start
        if band.end - band.start >= SHORTEST_BAND[view] and not is_hidden:
            yield band


def _band(band: Band, lane: str, pen: _Pen) -> dict[str, Any]:
    start, end = pen.teller.wall(band.start), pen.teller.wall(band.end)
    return {
        "lane": lane,
        "kind": band.kind.value,
        "start": start,
        "end": max(end, start),
        "words": pen.teller.band(band),
    }


def _closed(closed: Iterable[Closed], pen: _Pen) -> list[dict[str, Any]]:
    """Maintenance in the span, as bands."""
    first, last = pen.span.start, pen.span.end
    return [
        {
            "lane": pen.lanes[row.lane_id].slug,
            "kind": "maintenance",
            "start": pen.teller.wall(max(start, first)),
            "end": pen.teller.wall(min(end, last)),
            "words": words.closed_words(row, pen.span.zone),
        }
        for row, start, end in closed
        if start < last and end > first
    ]


def _wall(moment: datetime, span: Span) -> str:
    return wall_of(moment, span.zone).isoformat(timespec="seconds")
