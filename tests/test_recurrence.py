"""The times of a series on the wall, over changes of the clocks."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookings.recurrence import MOST, Every, Note, Pattern, occurrences
from bookings.wall_clock import wall_of

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"]
TUESDAY = datetime.fromisoformat("2030-01-15 09:00")
HOUR = timedelta(hours=1)


def days(pattern: Pattern, start: datetime = TUESDAY) -> list[str]:
    return [f"{o.wall_start:%m-%d}" for o in occurrences(start, start + HOUR, pattern, UTC)]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (Pattern(Every.DAY, count=3), ["01-15", "01-16", "01-17"]),
        (Pattern(Every.DAY, until=date(2030, 1, 16)), ["01-15", "01-16"]),
        (Pattern(Every.DAY, until=date(2030, 1, 30), count=2), ["01-15", "01-16"]),
        (Pattern(Every.DAY, until=date(2030, 1, 14)), []),
        (Pattern(Every.WEEKDAY, count=5), ["01-15", "01-16", "01-17", "01-18", "01-21"]),
        (Pattern(Every.WEEK, count=2), ["01-15", "01-22"]),
        (Pattern(Every.WEEK, frozenset({0, 3}), count=3), ["01-17", "01-21", "01-24"]),
    ],
)
def test_days(pattern: Pattern, expected: list[str]) -> None:
    assert days(pattern) == expected


def test_more_than_the_most_is_told_by_one_more() -> None:
    assert len(days(Pattern(Every.DAY, until=date(2039, 1, 1)))) == MOST + 1
    assert len(days(Pattern(Every.DAY, count=MOST))) == MOST


@pytest.mark.parametrize(
    ("start", "hours", "night", "begins", "ends", "notes"),
    [
        # Berlin, 31 March 2030: from 2 to 3 o'clock; 27 October: from 3 back to 2.
        ((2, 30), 2, (3, 31), "01:30", "02:30", (Note.START_MOVED,)),
        ((1, 0), 1.5, (3, 31), "00:00", "01:30", (Note.END_MOVED,)),
        ((2, 30), 0.25, (3, 31), "01:30", "01:45", (Note.START_MOVED, Note.END_MOVED)),
        ((2, 30), 0.5, (3, 31), "01:30", "01:00", (Note.START_MOVED,)),
        ((2, 30), 2, (10, 27), "00:30", "03:30", (Note.START_FIRST,)),
        ((1, 0), 1.5, (10, 27), "23:00", "00:30", (Note.END_FIRST,)),
        ((9, 0), 8, (3, 31), "07:00", "15:00", ()),
        ((9, 0), 8, (10, 27), "08:00", "16:00", ()),
    ],
)
def test_nights_of_changes_in_berlin(
    start: tuple[int, int],
    hours: float,
    night: tuple[int, int],
    begins: str,
    ends: str,
    notes: tuple[Note, ...],
) -> None:
    hour, minute = start
    new_year = datetime.fromisoformat("2030-01-01")
    evening = new_year.replace(month=night[0], day=night[1], hour=hour, minute=minute)
    first = evening - timedelta(days=1)
    pattern = Pattern(Every.DAY, count=2)
    found = occurrences(first, first + timedelta(hours=hours), pattern, BERLIN)[1]
    assert (f"{found.start:%H:%M}", f"{found.end:%H:%M}", found.notes) == (begins, ends, notes)


@pytest.mark.parametrize(
    ("zone", "start", "minutes", "asks", "meant", "begins", "ends"),
    [
        # Clocks go forward: 02:30 is 03:30 unless the earlier is meant.
        ("Europe/Berlin", "2030-03-31 02:30", 60, ["start", "end"][:1], [], "01:30", "01:30"),
        ("Europe/Berlin", "2030-03-31 02:30", 60, ["start"], ["00:30"], "00:30", "01:30"),
        ("America/New_York", "2030-03-10 02:15", 120, ["start"], ["06:15"], "06:15", "08:15"),
        ("Australia/Lord_Howe", "2030-10-06 02:15", 60, ["start"], ["15:15"], "15:15", "16:15"),
        # They go back: the first, unless the second is meant; an end is after its start.
        ("Europe/Berlin", "2030-10-27 02:30", 60, ["start"], [], "00:30", "02:30"),
        ("Europe/Berlin", "2030-10-27 02:30", 60, ["start"], ["01:30"], "01:30", "02:30"),
        ("Europe/Berlin", "2030-10-27 02:15", 30, ["start", "end"], ["01:15"], "01:15", "01:45"),
        ("Europe/Berlin", "2030-10-27 02:15", 30, ["start", "end"], ["01:45"], "00:15", "01:45"),
        ("America/New_York", "2030-11-03 01:30", 60, ["start"], ["06:30"], "06:30", "07:30"),
        ("Australia/Lord_Howe", "2030-04-07 01:45", 60, ["start"], ["15:15"], "15:15", "16:15"),
    ],
)
def test_which_moment_is_meant_can_be_said(
    zone: str, start: str, minutes: int, asks: list[str], meant: list[str], begins: str, ends: str
) -> None:
    first = datetime.fromisoformat(start)
    end = first + timedelta(minutes=minutes)
    usual = occurrences(first, end, Pattern(Every.DAY, count=1), ZoneInfo(zone))[0]
    assert ["end" if each.is_end else "start" for each in usual.doubts] == asks
    all_choices = [moment for doubt in usual.doubts for moment in doubt.choices]
    said = [moment for moment in all_choices if f"{moment:%H:%M}" in meant]
    assert len(said) == len(meant)
    found = occurrences(first, end, Pattern(Every.DAY, count=1), ZoneInfo(zone), said)[0]
    assert (f"{found.start:%H:%M}", f"{found.end:%H:%M}") == (begins, ends)
    assert all(doubt.meant in doubt.choices for doubt in found.doubts)


@given(
    zone=st.sampled_from(ZONES).map(ZoneInfo),
    start=st.integers(-400 * 1440, 400 * 1440).map(
        lambda minutes: TUESDAY + timedelta(minutes=minutes)
    ),
    minutes=st.integers(1, 3000),
    every=st.sampled_from(list(Every)),
    weekdays=st.frozensets(st.integers(0, 6)),
    count=st.integers(1, 40),
)
def test_each_is_at_its_time_on_the_wall_unless_told(
    zone: ZoneInfo,
    start: datetime,
    minutes: int,
    every: Every,
    weekdays: frozenset[int],
    count: int,
) -> None:
    length = timedelta(minutes=minutes)
    found = occurrences(start, start + length, Pattern(every, weekdays, count=count), zone)
    assert len(found) == count
    assert [o.start for o in found] == sorted({o.start for o in found})
    for each in found:
        assert each.wall_start.time() == start.time()
        is_moved = {Note.START_MOVED, Note.END_MOVED} & set(each.notes)
        if not is_moved:
            assert wall_of(each.start, zone) == each.wall_start
            assert wall_of(each.end, zone) == each.wall_start + length
