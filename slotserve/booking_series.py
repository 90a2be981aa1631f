"""A booking's series as its page tells of it: which of how many, its pattern, and the others."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.utils.dates import WEEKDAYS
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from bookings.models import Booking, Series
from bookings.recurrence import Every
from bookings.series_rows import Repeat
from bookings.states import Status
from bookings.wall_clock import wall_of
from wire.zones import zone_named

CHANGEABLE = (Status.UPCOMING, Status.PENDING, Status.IN_PROGRESS)


@dataclass(frozen=True, slots=True)
class Member:
    """One booking of the series."""

    number: int
    booking: Booking
    status: Status
    is_this: bool


@dataclass(frozen=True, slots=True)
class SeriesView:
    """A series seen from one of its bookings."""

    words: str
    members: tuple[Member, ...]
    this: Member

    @property
    def previous(self) -> Member | None:
        """The one before it."""
        return self._at(self.this.number - 1)

    @property
    def following(self) -> Member | None:
        """The one after it."""
        return self._at(self.this.number + 1)

    @property
    def is_changeable(self) -> bool:
        """Whether one of them is not over."""
        return any(each.status in CHANGEABLE for each in self.members)

    def _at(self, number: int) -> Member | None:
        return next((each for each in self.members if each.number == number), None)


def series_view(booking: Booking, now: datetime) -> SeriesView | None:
    """The series of a booking, of its owner; None: it is of none. Two queries."""
    series = booking.series
    if series is None:
        return None
    rows = Booking.objects.filter(series=series, owner=booking.owner_id).order_by("start", "pk")
    members = tuple(
        Member(number, each, each.status(now), each.pk == booking.pk)
        for number, each in enumerate(rows, start=1)
    )
    this = next(each for each in members if each.is_this)
    return SeriesView(pattern_words(series, members), members, this)


def pattern_words(series: Series, members: Iterable[Member]) -> str:
    """How it repeats, until when, and by whose clock."""
    parts = [_days(series, members), *_end(series)]
    values = {"pattern": ", ".join(parts), "zone": series.zone}
    return _("%(pattern)s; by the clock of %(zone)s.") % values


def _days(series: Series, members: Iterable[Member]) -> str:
    if series.every != Every.WEEK:
        return str(Repeat(series.every).label)
    first = next(iter(members)).booking.start
    zone = zone_named(series.zone)
    days = series.days or ([wall_of(first, zone).weekday()] if zone else [])
    names = [str(WEEKDAYS[day]) for day in days]
    return _("Every week on %(days)s") % {"days": ", ".join(names)}


def _end(series: Series) -> list[str]:
    found = []
    if series.until:
        day = date_format(series.until, pgettext("date format", "j M Y"))
        found.append(_("until %(day)s") % {"day": day})
    if series.count:
        words = ngettext("%(count)s time", "%(count)s times", series.count)
        found.append(words % {"count": series.count})
    return found
