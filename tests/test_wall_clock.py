"""Times on the wall and the moments that they name, in zones that change their clocks."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookings.wall_clock import Change, Shown, changes, day_start, read, wall_of

BERLIN, NEW_YORK = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")  # half an hour
ZONES = [BERLIN, NEW_YORK, LORD_HOWE, ZoneInfo("UTC"), ZoneInfo("Asia/Kathmandu")]


def naive(text: str) -> datetime:
    return datetime.fromisoformat(text)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "wall", "shown", "moments"),
    [
        (BERLIN, "2026-07-01 10:00", Shown.ONCE, ["2026-07-01 08:00"]),
        (BERLIN, "2026-12-01 10:00", Shown.ONCE, ["2026-12-01 09:00"]),
        (BERLIN, "2026-03-29 01:59", Shown.ONCE, ["2026-03-29 00:59"]),
        (BERLIN, "2026-03-29 02:30", Shown.NEVER, ["2026-03-29 00:30", "2026-03-29 01:30"]),
        (BERLIN, "2026-03-29 03:00", Shown.ONCE, ["2026-03-29 01:00"]),
        (BERLIN, "2026-10-25 02:00", Shown.TWICE, ["2026-10-25 00:00", "2026-10-25 01:00"]),
        (BERLIN, "2026-10-25 03:00", Shown.ONCE, ["2026-10-25 02:00"]),
        (NEW_YORK, "2026-03-08 02:30", Shown.NEVER, ["2026-03-08 06:30", "2026-03-08 07:30"]),
        (NEW_YORK, "2026-11-01 01:30", Shown.TWICE, ["2026-11-01 05:30", "2026-11-01 06:30"]),
        (NEW_YORK, "2026-11-01 02:00", Shown.ONCE, ["2026-11-01 07:00"]),
        (LORD_HOWE, "2026-10-04 02:15", Shown.NEVER, ["2026-10-03 15:15", "2026-10-03 15:45"]),
        (LORD_HOWE, "2026-10-04 02:30", Shown.ONCE, ["2026-10-03 15:30"]),
        (LORD_HOWE, "2026-04-05 01:45", Shown.TWICE, ["2026-04-04 14:45", "2026-04-04 15:15"]),
        (LORD_HOWE, "2026-04-05 01:15", Shown.ONCE, ["2026-04-04 14:15"]),
    ],
)
def test_a_time_on_the_wall_names_moments(
    zone: ZoneInfo, wall: str, shown: Shown, moments: list[str]
) -> None:
    reading = read(naive(wall), zone)
    assert (reading.shown, list(reading.choices)) == (shown, [utc(text) for text in moments])
    assert reading.moment == (utc(moments[0]) if shown is Shown.ONCE else None)


@given(
    st.datetimes(min_value=naive("2000-01-01"), max_value=naive("2060-01-01")),
    st.sampled_from(ZONES),
)
def test_every_moment_is_among_those_that_its_time_on_the_wall_names(
    wall: datetime, zone: ZoneInfo
) -> None:
    moment = wall.replace(tzinfo=UTC)
    reading = read(wall_of(moment, zone), zone)
    assert moment in reading.choices
    assert reading.shown is not Shown.NEVER


@pytest.mark.parametrize("wall", [naive("0001-01-01"), naive("9999-12-31T23:59")])
def test_the_ends_of_the_calendar_name_no_moment(wall: datetime) -> None:
    assert {len(read(wall, zone).choices) for zone in (BERLIN, NEW_YORK)} == {0, 1}


@pytest.mark.parametrize(
    ("zone", "day", "at", "minutes"),
    [
        (BERLIN, "2026-03-29", "2026-03-29 01:00", 60),
        (BERLIN, "2026-10-25", "2026-10-25 01:00", -60),
        (NEW_YORK, "2026-11-01", "2026-11-01 06:00", -60),
        (LORD_HOWE, "2026-10-04", "2026-10-03 15:30", 30),
    ],
)
def test_the_change_of_a_day_is_found(zone: ZoneInfo, day: str, at: str, minutes: int) -> None:
    on = date.fromisoformat(day)
    found = changes(on - timedelta(days=3), on + timedelta(days=3), zone)
    assert found == [Change(utc(at), timedelta(minutes=minutes))]
    assert changes(on + timedelta(days=1), on + timedelta(days=30), zone) == []


def test_a_day_starts_at_midnight_or_where_the_clock_goes_on() -> None:
    assert day_start(date(2026, 7, 1), BERLIN) == utc("2026-06-30 22:00")
    beirut = ZoneInfo("Asia/Beirut")  # its clocks go from 0 to 1 o'clock
    assert wall_of(day_start(date(2026, 3, 29), beirut), beirut) == naive("2026-03-29T01:00")
