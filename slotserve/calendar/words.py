"""What the calendar says of days, times, and days on which clocks are changed."""

from datetime import date, datetime, tzinfo
from functools import lru_cache

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


def times(start: datetime, end: datetime, zone: tzinfo) -> str:
    """From when to when, with the day."""
    return f"{day_words(start.astimezone(zone).date())} {clocks(start, end, zone)}"


def clocks(start: datetime, end: datetime, zone: tzinfo) -> str:
    """Without the first day; zones' names where they differ, the last day where it does."""
    return clocks_between(start.astimezone(zone), end.astimezone(zone))


def clocks_between(one: datetime, other: datetime) -> str:
    """The same of times in a zone."""
    first, last = (each.time().isoformat("minutes") for each in (one, other))
    if one.utcoffset() != other.utcoffset():
        first, last = f"{first} {one.tzname()}", f"{last} {other.tzname()}"
    if one.date() != other.date():
        last = f"{day_words(other.date())} {last}"
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
