"""What the calendar says of days, times, and days on which clocks are changed."""

from datetime import date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple

from django.utils.formats import date_format
from django.utils.translation import get_language, pgettext
from django.utils.translation import gettext as _

from bookings.wall_clock import Change, changes, wall_of
from lanes.models import Maintenance
from slotserve.calendar.spans import Span, View

DASH = "\N{EN DASH}"


def title(span: Span) -> str:
    """The days in words, such as 30 November - 6 December 2026."""
    if span.view is View.MONTH:
        return date_format(span.first, "F Y")
    last = date_format(span.last, pgettext("date format", "j F Y"))
    if span.view is View.DAY or span.view is View.HOURS:
        return f"{date_format(span.first, 'l')}, {last}"
    is_short = span.first.year == span.last.year
    day = pgettext("date format", "j F") if is_short else pgettext("date format", "j F Y")
    return f"{date_format(span.first, day)} {DASH} {last}"


class Clock(NamedTuple):
    """What clocks show somewhere at a moment."""

    day: date
    day_words: str
    time: str
    offset: timedelta | None
    zone: str | None


def clock(local: datetime) -> Clock:
    """At a time in a zone."""
    day = local.date()
    time = local.time().isoformat("minutes")
    return Clock(day, day_words(day), time, local.utcoffset(), local.tzname())


def times(start: datetime, end: datetime, zone: tzinfo) -> str:
    """From when to when, with the day."""
    one = clock(start.astimezone(zone))
    return f"{one.day_words} {clocks_between(one, clock(end.astimezone(zone)))}"


def clocks(start: datetime, end: datetime, zone: tzinfo) -> str:
    """Without the first day; zones' names where they differ, the last day where it does."""
    return clocks_between(clock(start.astimezone(zone)), clock(end.astimezone(zone)))


def clocks_between(one: Clock, other: Clock) -> str:
    """The same of two clocks of a zone."""
    first, last = one.time, other.time
    if one.offset != other.offset:
        first, last = f"{first} {one.zone}", f"{last} {other.zone}"
    if one.day != other.day:
        last = f"{other.day_words} {last}"
    return f"{first} {DASH} {last}"


def day_words(day: date) -> str:
    """A day without its year."""
    return _day_words(day, get_language())


@lru_cache(maxsize=2000)
def _day_words(day: date, language: str | None) -> str:
    """A week of all lanes says few days hundreds of times, and Django takes long to say one."""
    return date_format(day, pgettext("date format", "j M"))


def closed_words(row: Maintenance, zone: tzinfo) -> str:
    """From when to when a lane is closed, and why."""
    ends = row.ended_at or row.end
    start = row.start.astimezone(zone)
    when = _("from %s on") % f"{day_words(start.date())} {start:%H:%M}"
    if ends:
        when = times(row.start, ends, zone)
    said = _("Maintenance, %(when)s") % {"when": when}
    return f"{said}: {row.reason}" if row.reason else said


def notes(span: Span) -> list[str]:
    """A sentence for each day of the span on which the clocks are changed."""
    return [_note(change, span.zone) for change in changes(span.first, span.last, span.zone)]


def _note(change: Change, zone: tzinfo) -> str:
    after = wall_of(change.at, zone)
    minutes = round(change.by.total_seconds() / 60)
    values = {
        "day": date_format(after, pgettext("date format", "j F")),
        "before": f"{after - change.by:%H:%M}",
        "after": f"{after:%H:%M}",
        "minutes": abs(minutes),
    }
    if minutes > 0:
        return (
            _("On %(day)s clocks go forward from %(before)s to %(after)s: no time between exists.")
            % values
        )
    return (
        _(
            "On %(day)s clocks go back from %(before)s to %(after)s: the %(minutes)d minutes "
            "before come twice, and share their place here."
        )
        % values
    )
