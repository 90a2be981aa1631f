"""Days and weeks of the site's time zone, in real seconds, and its grid of minutes. Pure.

All arithmetic is on UTC: two moments of one zone subtract as their clocks show, not as time passes.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo

from bookings.wall_clock import DAY, MINUTE, day_start

Week = tuple[int, int]  # ISO year and week


def day_parts(start: datetime, end: datetime, zone: tzinfo) -> Iterator[tuple[date, float]]:
    """What of [start, end) lies in each day, in real seconds."""
    day = start.astimezone(zone).date()
    begins = start.astimezone(UTC)
    while begins < end:
        day += DAY
        ends = min(day_start(day, zone), end)
        yield day - DAY, (ends - begins).total_seconds()
        begins = ends


def week_of(day: date) -> Week:
    """The ISO week that the day is in."""
    year, week, _ = day.isocalendar()
    return year, week


def is_on_grid(moment: datetime, minutes: int, zone: tzinfo) -> bool:
    """Whether clocks there show a multiple of `minutes` after midnight, to the microsecond."""
    local = moment.astimezone(zone)
    is_whole = not (local.second or local.microsecond)
    return is_whole and (local.hour * 60 + local.minute) % minutes == 0


def grid_before(moment: datetime, minutes: int, zone: tzinfo) -> datetime:
    """The last moment of the grid that is not after this one."""
    local = moment.astimezone(zone)
    back = timedelta(
        minutes=(local.hour * 60 + local.minute) % minutes,
        seconds=local.second,
        microseconds=local.microsecond,
    )
    found = moment.astimezone(UTC) - back
    # A change of the clocks in between: on by minutes until they show one of the grid again.
    while not is_on_grid(found, minutes, zone):
        found -= MINUTE
    return found


def grid_after(moment: datetime, minutes: int, zone: tzinfo) -> datetime:
    """The first moment of the grid that is not before this one."""
    found = grid_before(moment, minutes, zone)
    while found < moment or not is_on_grid(found, minutes, zone):
        found += MINUTE
    return found
