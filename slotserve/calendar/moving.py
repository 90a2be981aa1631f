"""A move as the calendar's page asks for it: where it was seen, and where it shall go. Times are
moments, or what the viewer's wall clock shows; one that does not exist or comes twice is asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from django.contrib.auth.models import User
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from bookings import services
from bookings.changes import CHANGED, Seen
from bookings.models import Booking
from bookings.series_changes import Span, move_series
from bookings.wall_clock import Reading, Shown, read, wall_of
from lanes.models import Lane
from lanes.refusals import Refusal

YEARS = range(1970, 9000)
UNREADABLE = gettext_lazy("This move cannot be read: reload the page, then try again.")


@dataclass(frozen=True, slots=True)
class Asked:
    """Which of start and end is meant by a time on the wall that is not one moment."""

    field: str  # "start" or "end"
    wall: datetime
    reading: Reading


@dataclass(frozen=True, slots=True)
class Wish:
    """A booking, how it was seen, its new times and lane, and whether it may wait for approval."""

    booking: Booking
    seen: Seen
    lane: Lane
    start: datetime
    end: datetime
    is_sure: bool


def wish(said: Mapping[str, Any], zone: tzinfo) -> Wish | Asked | Refusal:
    """What a page asks for: `booking`, `seen` {start, end, lane}, and `start`, `end`, `lane`;
    `is_sure`, where a confirmed one may have to be approved.

    A start without an end keeps the length, whatever the clocks do meanwhile; an end without a
    start keeps the start.
    """
    booking = _booking(said.get("booking"))
    seen = _seen(said.get("seen"))
    if booking is None or seen is None:
        return _unreadable()
    start = _moment(said, "start", seen.start, zone)
    kept_end = start + (seen.end - seen.start) if isinstance(start, datetime) else seen.end
    end = _moment(said, "end", kept_end if said.get("start") else seen.end, zone)
    lane = Lane.objects.filter(slug=str(said.get("lane", ""))[:63]).first()
    for moment in (start, end):
        if not isinstance(moment, datetime):
            return moment
    if lane is None or not isinstance(start, datetime) or not isinstance(end, datetime):
        return _unreadable()
    return Wish(booking, seen, lane, start, end, is_sure=said.get("is_sure") is True)


def move(wanted: Wish, actor: User) -> Booking | Refusal:
    """Carry it out, unless the booking is not as it was seen any more."""
    return services.move(
        wanted.booking,
        actor=actor,
        start=wanted.start,
        end=wanted.end,
        lane=wanted.lane,
        seen=wanted.seen,
        is_sure=wanted.is_sure,
    )


def move_span(wanted: Wish, actor: User, span: Span) -> Sequence[Booking] | Refusal:
    """Carry it out for this booking, or for those of its series that are meant."""
    if span is Span.THIS:
        done = move(wanted, actor)
        return done if isinstance(done, Refusal) else (done,)
    booking, seen = wanted.booking, wanted.seen
    if (booking.start, booking.end, booking.lane_id) != (seen.start, seen.end, seen.lane_id):
        return CHANGED
    lane = wanted.lane if wanted.lane.pk != booking.lane_id else None
    return move_series(
        booking,
        actor=actor,
        start=wanted.start,
        end=wanted.end,
        lane=lane,
        span=span,
        is_sure=wanted.is_sure,
    )


def question(asked: Asked) -> str:
    """What to ask of a time that is not one moment."""
    values = {"time": f"{asked.wall:%H:%M}"}
    if asked.reading.shown is Shown.TWICE:
        return _("%(time)s comes twice that night, as clocks go back. Which one?") % values
    return _("There is no %(time)s that night, as clocks go forward. Which is meant?") % values


def choices(asked: Asked, zone: tzinfo) -> list[tuple[datetime, str]]:
    """The moments that can be meant, each with what clocks show then."""
    return [
        (moment, f"{moment.astimezone(zone):%H:%M %Z} ({moment.astimezone(UTC):%H:%M} UTC)")
        for moment in asked.reading.choices
    ]


def _moment(
    said: Mapping[str, Any], field: str, otherwise: datetime, zone: tzinfo
) -> datetime | Asked | Refusal:
    text = said.get(field)
    if not text:
        return otherwise
    value = parsed(text)
    if value is None:
        return _unreadable()
    if value.tzinfo is not None:
        return value
    if wall_of(otherwise, zone) == value:  # dragged, but not in time: it may be either of two
        return otherwise
    found = read(value, zone)
    return found.moment or Asked(field, value, found)


def parsed(text: object) -> datetime | None:
    """A time, with a zone or without; None, where it is none, or none that can be reckoned with."""
    try:
        found = parse_datetime(str(text))
    except ValueError:
        return None
    return found if found and found.year in YEARS else None


def _booking(pk: object) -> Booking | None:
    is_number = isinstance(pk, int | str) and str(pk).isascii() and str(pk).isdigit()
    found = Booking.objects.select_related("series")
    return found.filter(pk=int(str(pk)[:18])).first() if is_number else None


def _seen(said: object) -> Seen | None:
    if not isinstance(said, dict):
        return None
    start, end = parsed(said.get("start")), parsed(said.get("end"))
    lane = Lane.objects.filter(slug=str(said.get("lane", ""))[:63]).values_list("pk", flat=True)
    if not start or not end or not start.tzinfo or not end.tzinfo or not lane:
        return None
    return Seen(start, end, lane[0])


def _unreadable() -> Refusal:
    return Refusal("unreadable", str(UNREADABLE))
