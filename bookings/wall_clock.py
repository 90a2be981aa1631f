"""What clocks on the wall show, and which moments that names: none in a spring night's gap, two in
an autumn night's hour that comes twice. Pure."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)


class Shown(StrEnum):
    """How often clocks of a zone show a time."""

    ONCE = "once"
    NEVER = "never"
    TWICE = "twice"


@dataclass(frozen=True, slots=True)
class Reading:
    """A time on the wall, and the moments in UTC that can be meant by it, in order.

    Shown once: the one. Twice: both. Never: the two that were meant if the clock had not, or had
    already, been changed (02:30 of a night from 2 to 3 o'clock: 01:30 and 03:30).
    """

    shown: Shown
    choices: tuple[datetime, ...]

    @property
    def moment(self) -> datetime | None:
        """The moment, when there is no question."""
        return self.choices[0] if self.shown is Shown.ONCE else None


@dataclass(frozen=True, slots=True)
class Change:
    """A moment at which the clocks of a zone are changed, and by how much (negative: back)."""

    at: datetime
    by: timedelta


def read(wall: datetime, zone: tzinfo) -> Reading:
    """The moments that a naive time names in a zone; at the calendar's ends, none."""
    try:
        both = sorted({_moment(wall, zone, fold) for fold in (0, 1)})
    except OverflowError:
        return Reading(Shown.NEVER, ())
    shown = [moment for moment in both if wall_of(moment, zone) == wall]
    if not shown:
        return Reading(Shown.NEVER, tuple(both))
    return Reading(Shown.TWICE if len(shown) > 1 else Shown.ONCE, tuple(shown))


def wall_of(moment: datetime, zone: tzinfo) -> datetime:
    """What clocks of the zone show at that moment: a naive time."""
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def day_start(day: date, zone: tzinfo) -> datetime:
    """The first moment of a day in a zone, in UTC: where midnight is left out, the moment after."""
    return _moment(datetime.combine(day, time()), zone, 0)


def changes(first: date, last: date, zone: tzinfo) -> list[Change]:
    """When the zone's clocks are changed on the days from first to last, by time."""
    found = []
    for number in range((last - first).days + 1):
        day = first + number * DAY
        start, end = day_start(day, zone), day_start(day + DAY, zone)
        if _offset(start, zone) != _offset(end, zone):
            found.append(_change(start, end, zone))
    return found


def _change(before: datetime, after: datetime, zone: tzinfo) -> Change:
    """The one between two moments, to the minute."""
    old, new = _offset(before, zone), _offset(after, zone)
    while after - before > MINUTE:
        middle = before + MINUTE * ((after - before) // MINUTE // 2)
        if _offset(middle, zone) == old:
            before = middle
        else:
            after = middle
    return Change(after, new - old)


def _moment(wall: datetime, zone: tzinfo, fold: int) -> datetime:
    return wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)


def _offset(moment: datetime, zone: tzinfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()
