"""Days, weeks and the grid of the site's zone, on nights when clocks change too."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookings.site_days import day_parts, grid_after, grid_before, is_on_grid, week_of
from bookings.wall_clock import day_start

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
zones = st.sampled_from([ZoneInfo(name) for name in ZONES])
# Two years in minutes: every change of the clocks of these zones is in them.
moments = st.integers(0, 2 * 366 * 24 * 60).map(
    lambda minutes: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
)
HOUR = 3600.0


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", date(2026, 3, 29), 23),
        ("Europe/Berlin", date(2026, 10, 25), 25),
        ("America/New_York", date(2026, 3, 8), 23),
        ("America/New_York", date(2026, 11, 1), 25),
        ("Australia/Lord_Howe", date(2026, 4, 5), 24.5),
        ("Australia/Lord_Howe", date(2026, 10, 4), 23.5),
        ("Europe/Berlin", date(2026, 7, 1), 24),
        ("Africa/Cairo", date(2026, 4, 24), 23),  # its clocks skip midnight itself
        ("America/Havana", date(2026, 11, 1), 25),  # and these have it twice
    ],
)
def test_a_day_is_as_long_as_it_really_is(zone: str, day: date, hours: float) -> None:
    there = ZoneInfo(zone)
    start, end = day_start(day, there), day_start(day + timedelta(days=1), there)
    assert (end - start).total_seconds() == hours * HOUR
    assert list(day_parts(start, end, there)) == [(day, hours * HOUR)]


def test_what_goes_over_midnight_counts_to_each_day() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    start = datetime(2026, 10, 24, 22, 0, tzinfo=berlin)
    end = datetime(2026, 10, 25, 4, 0, tzinfo=berlin)  # clocks go back at 3
    parts = [(date(2026, 10, 24), 2 * HOUR), (date(2026, 10, 25), 5 * HOUR)]
    assert list(day_parts(start.astimezone(UTC), end.astimezone(UTC), berlin)) == parts


@given(start=moments, minutes=st.integers(1, 20 * 24 * 60), zone=zones)
def test_parts_are_the_whole_and_each_lies_in_its_day(
    start: datetime, minutes: int, zone: ZoneInfo
) -> None:
    end = start + timedelta(minutes=minutes)
    parts = list(day_parts(start, end, zone))
    assert sum(seconds for _, seconds in parts) == minutes * 60
    days = [day for day, _ in parts]
    assert days == sorted(set(days))
    assert days[0] == start.astimezone(zone).date()
    assert days[-1] == (end - timedelta.resolution).astimezone(zone).date()
    assert all(0 < seconds <= 25 * HOUR for _, seconds in parts)


@given(
    moment=moments,
    seconds=st.integers(0, 59),
    grid=st.sampled_from([5, 15, 30, 60, 120]),
    zone=zones,
)
def test_the_grid_is_met_on_either_side(
    moment: datetime, seconds: int, grid: int, zone: ZoneInfo
) -> None:
    moment += timedelta(seconds=seconds)
    before, after = grid_before(moment, grid, zone), grid_after(moment, grid, zone)
    assert before <= moment <= after
    assert is_on_grid(before, grid, zone)
    assert is_on_grid(after, grid, zone)
    assert after - before <= timedelta(minutes=2 * grid + 60)
    inside = before + timedelta(minutes=1)
    while before < inside < after:
        assert not is_on_grid(inside, grid, zone) or inside == moment
        inside += timedelta(minutes=1)


def test_weeks_are_those_of_iso() -> None:
    assert week_of(date(2027, 1, 3)) == (2026, 53)
    assert week_of(date(2027, 1, 4)) == (2027, 1)
