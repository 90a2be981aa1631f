"""Spans of days that the calendar shows, in the viewer's zone. Pure."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from enum import StrEnum

from bookings.wall_clock import DAY, day_start

FIRST, LAST = date(2001, 1, 1), date(2199, 12, 31)  # from a Monday on


class View(StrEnum):
    """How much is shown at once; `hours` is a day, closer."""

    HOURS = "hours"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class Span:
    """The days from first to last, inclusive."""

    view: View
    day: date  # the one that was asked for
    first: date
    last: date
    zone: tzinfo

    @property
    def start(self) -> datetime:
        """Its first moment, in UTC."""
        return day_start(self.first, self.zone)

    @property
    def end(self) -> datetime:
        """The moment after its last one, in UTC."""
        return day_start(self.last + DAY, self.zone)

    @property
    def days(self) -> int:
        """How many."""
        return (self.last - self.first).days + 1

    @property
    def previous(self) -> date:
        """A day of the span before."""
        return max(self.first - DAY, FIRST)

    @property
    def following(self) -> date:
        """A day of the span after."""
        return min(self.last + DAY, LAST)


def span_of(view: View, day: date, zone: tzinfo) -> Span:
    """The day, the week from Monday, or the month that has this day."""
    day = min(max(day, FIRST), LAST)
    if view is View.WEEK:
        first = day - timedelta(days=day.weekday())
        return Span(view, day, first, first + 6 * DAY, zone)
    if view is View.MONTH:
        first = day.replace(day=1)
        following = (first + 31 * DAY).replace(day=1)
        return Span(view, day, first, following - DAY, zone)
    return Span(view, day, day, day, zone)


def read_view(text: str) -> View | None:
    """The view of this name, if there is one."""
    return View(text) if text in list(View) else None


def read_day(text: str, now: datetime, zone: tzinfo) -> date:
    """A day such as 2026-11-30; today, when it is none."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return now.astimezone(zone).date()


def offset_words(moment: datetime, zone: tzinfo) -> str:
    """What a zone is ahead of UTC at a moment, to the minute: +05:45."""
    minutes = (moment.astimezone(zone).utcoffset() or timedelta()) // timedelta(minutes=1)
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}"
