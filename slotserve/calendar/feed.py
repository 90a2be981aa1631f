"""A span of the calendar as the page's script draws it: times on the viewer's wall, no offsets."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from bookings.wall_clock import wall_of
from bookings.warmth import Band
from lanes.models import Lane
from slotserve.calendar import reading, words
from slotserve.calendar.condensing import Block, Entry, condense
from slotserve.calendar.reading import Sought
from slotserve.calendar.spans import Span, View, offset_words
from slotserve.calendar.warming import lane_bands

SHORTEST = timedelta(minutes=15)  # shown, where a clock set back hides a booking's length
SHORTEST_BAND = {
    View.HOURS: timedelta(),
    View.DAY: timedelta(),
    View.WEEK: timedelta(minutes=5),
}


def feed(span: Span, sought: Sought, user: User, now: datetime) -> dict[str, Any]:
    """Lanes, bookings and bands of a span; six queries, two for a month, which shows no bands."""
    lanes = reading.lanes_of(sought)
    margin = reading.reach()
    rows = reading.booked(reading.held(lanes, span.start - margin, span.end + margin), now)
    slugs = {lane.pk: lane.slug for lane in lanes}
    inside = [row for row in rows if row.end > span.start and row.start < span.end]
    entries = [reading.entry_of(row, slugs[row.lane_id], user, now) for row in inside]
    entries.sort(key=lambda entry: (entry.lane, entry.start))
    shown = list(condense(entries, span.view, span.zone))
    hidden = defaultdict(list)
    for entry in shown:
        if isinstance(entry, Block):
            hidden[entry.lane].append(entry)
    bands = {} if span.view is View.MONTH else lane_bands(lanes, rows, span.start, span.end, now)
    return {
        **_frame(span, now),
        "lanes": [_lane(lane) for lane in lanes],
        "events": _events(shown, lanes, span, of_slots(bands)),
        "bands": [
            _band(band, slugs[pk], span)
            for pk, found in bands.items()
            for band in _legible(found, span.view, hidden[slugs[pk]])
        ],
    }


def _frame(span: Span, now: datetime) -> dict[str, Any]:
    return {
        "view": span.view,
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
    shown: Iterable[Entry | Block],
    lanes: Sequence[Lane],
    span: Span,
    ahead: Mapping[int | None, list[Band]],
) -> list[dict[str, Any]]:
    """By start; each says when its model is warm."""
    names = {lane.slug: lane.name for lane in lanes}
    said = []
    for entry in sorted(shown, key=lambda entry: (entry.start, entry.lane)):
        event = _event(entry, names[entry.lane], span)
        warm = ahead.get(entry.pk, ()) if isinstance(entry, Entry) else ()
        if spoken := words.slot_words(warm, entry.start, span.zone):
            event["label"] += f", {spoken}"
        said.append(event)
    return said


def of_slots(bands: Mapping[int, list[Band]]) -> dict[int | None, list[Band]]:
    """The bands of each booking, by its primary key."""
    found = defaultdict(list)
    for band in chain.from_iterable(bands.values()):
        found[band.booking_id].append(band)
    return found


def _event(entry: Entry | Block, lane: str, span: Span) -> dict[str, Any]:
    start, end = wall_of(entry.start, span.zone), wall_of(entry.end, span.zone)
    said: dict[str, Any] = {
        "id": _key(entry),
        "lane": entry.lane,
        "start": start.isoformat(timespec="seconds"),
        "end": (end if end > start else start + SHORTEST).isoformat(timespec="seconds"),
        "title": words.entry_title(entry),
        "label": words.entry_label(entry, lane, span.zone),
        "kinds": _kinds(entry),
    }
    if isinstance(entry, Entry) and entry.is_editable:
        said["seen"] = {"start": exact(entry.start), "end": exact(entry.end), "lane": entry.lane}
        said["begun"] = entry.is_begun
    return said


def _key(entry: Entry | Block) -> str:
    return f"{entry.lane}-{exact(entry.start)}" if isinstance(entry, Block) else str(entry.pk)


def _kinds(entry: Entry | Block) -> list[str]:
    """What tells it from others, by the names that the style sheet knows."""
    if isinstance(entry, Block):
        return ["block"]
    kinds = ["mine" if entry.is_mine else "other"]
    if entry.is_pending:
        kinds.append("pending")
    if not entry.what:
        kinds.append("gpu")
    return kinds


def _legible(bands: Iterable[Band], view: View, hidden: Sequence[Block]) -> Iterator[Band]:
    """Those that are wide enough to be seen, and not of bookings that are put together."""
    for band in bands:
        is_hidden = any(block.start <= band.end and band.start <= block.end for block in hidden)
        if band.end - band.start >= SHORTEST_BAND[view] and not is_hidden:
            yield band


def _band(band: Band, lane: str, span: Span) -> dict[str, Any]:
    start, end = wall_of(band.start, span.zone), wall_of(band.end, span.zone)
    return {
        "lane": lane,
        "kind": band.kind,
        "start": start.isoformat(timespec="seconds"),
        "end": max(end, start).isoformat(timespec="seconds"),
        "words": words.band_words(band, span.zone),
    }


def _wall(moment: datetime, span: Span) -> str:
    return wall_of(moment, span.zone).isoformat(timespec="seconds")


def exact(moment: datetime) -> str:
    """A moment as its row has it."""
    return moment.astimezone(UTC).isoformat()
