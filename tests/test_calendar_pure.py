"""The calendar's pure parts: spans of days, and entries too narrow to be read put together."""

from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookings.wall_clock import DAY, day_start
from slotserve.calendar.condensing import DENSITIES, condense
from slotserve.calendar.entries import Block, Booked
from slotserve.calendar.month import LOOKS, UNITS, Facts, Kept, Look, Row, month_row, tallies
from slotserve.calendar.spans import (
    FIRST,
    LAST,
    Span,
    View,
    offset_words,
    read_day,
    read_view,
    span_of,
)
from tests.builders import at

BERLIN = ZoneInfo("Europe/Berlin")
VIEWER = 7


@pytest.mark.parametrize(
    ("view", "first", "last"),
    [
        (View.HOURS, "2026-11-30", "2026-11-30"),
        (View.DAY, "2026-11-30", "2026-11-30"),
        (View.WEEK, "2026-11-30", "2026-12-06"),
        (View.MONTH, "2026-11-01", "2026-11-30"),
    ],
)
def test_a_span_has_the_day_its_week_or_its_month(view: View, first: str, last: str) -> None:
    span = span_of(view, date(2026, 11, 30), BERLIN)
    assert (str(span.first), str(span.last)) == (first, last)
    assert span.start == datetime.fromisoformat(f"{first}T00:00+01:00")


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25)])
def test_a_day_on_which_clocks_are_changed_is_as_long_as_it_is(day: str, hours: int) -> None:
    span = span_of(View.DAY, date.fromisoformat(day), BERLIN)
    assert span.end - span.start == timedelta(hours=hours)


@given(st.dates(), st.sampled_from(View))
def test_spans_follow_each_other_without_gaps(day: date, view: View) -> None:
    span = span_of(view, day, UTC)
    assert FIRST <= span.first <= span.day <= span.last
    if span.last < LAST - timedelta(days=40):
        after = span_of(view, span.following, UTC)
        assert after.start == span.end
        assert span_of(view, after.previous, UTC) == span_of(view, span.last, UTC)


def test_what_an_address_says_is_read_or_is_today() -> None:
    assert read_day("2026-07-01", at(0), UTC) == date(2026, 7, 1)
    assert read_day("soon", at(0), UTC) == date(2030, 1, 15)
    assert (read_view("week"), read_view("year")) == (View.WEEK, None)


@pytest.mark.parametrize(
    ("zone", "words"),
    [("UTC", "+00:00"), ("Asia/Kathmandu", "+05:45"), ("America/St_Johns", "-03:30")],
)
def test_what_a_zone_is_ahead_of_utc(zone: str, words: str) -> None:
    assert offset_words(at(0), ZoneInfo(zone)) == words


def span(view: View, zone: tzinfo = UTC) -> Span:
    return span_of(view, date(2030, 1, 15), zone)


def row(pk: int, start: float, end: float, *, is_mine: bool = False) -> Booked:
    owner, called = (VIEWER, "me") if is_mine else (VIEWER + 1, "bob")
    times = (at(start), at(end))
    return Booked(pk, 1, *times, None, "confirmed", "gpu", owner, None, called, None, None)


def test_what_can_be_read_stays_as_it_is() -> None:
    rows = [row(n, 60 * n, 60 * n + 50) for n in range(6)]
    assert list(condense(rows, VIEWER, span(View.WEEK))) == rows


def test_more_of_others_become_one_across_small_gaps_and_ones_own_stay() -> None:
    others = [row(n, 60 * n, 60 * n + 50) for n in range(8)]
    mine = row(99, 52, 58, is_mine=True)
    late = row(8, 600, 610)
    found = list(condense([*others[:1], mine, *others[1:], late], VIEWER, span(View.WEEK)))
    block = Block(others[0], others[-1], 8, 8 * 50 * 60)
    assert found == [mine, block, late]
    assert (block.start, block.end, block.lane_id) == (at(0), at(470), 1)


def month(rows: list[Booked], days: list[datetime]) -> list[Row]:
    def read(kept: Kept) -> datetime:
        assert isinstance(kept, datetime)
        return kept

    def look(row: Booked) -> int:
        return LOOKS.index(Look(row.state == "pending", row.kind == "gpu"))

    held = [(row.lane_id, row.start, row.end, look(row)) for row in rows]
    mine = [each for each, row in zip(held, rows, strict=True) if row.owner_id == VIEWER]
    own = tallies(mine, days, read)
    return [month_row(tally, own.get(lane)) for lane, tally in tallies(held, days, read).items()]


MIDNIGHTS = [at(60 * (24 * n - 12)) for n in range(4)]  # three days; noon of the first is at(0)


def test_a_months_cell_has_what_its_day_has_of_each_booking() -> None:
    over_night = row(1, 11 * 60, 14 * 60, is_mine=True)
    waiting = row(2, 20 * 60, 21 * 60)._replace(state="pending", kind="model")
    (lane,) = month([row(0, -9000, -8000), over_night, waiting], MIDNIGHTS)
    assert [cell.facts for cell in lane.cells] == [
        Facts(1, 1.0, 1, 0, 1),
        Facts(2, 3.0, 1, 1, 1),
        Facts(0, 0.0, 0, 0, 0),
    ]
    assert lane.stretches == {
        (True, Look(is_pending=False, is_gpu=True)): [(46, 52)],
        (False, Look(is_pending=True, is_gpu=False)): [(64, 66)],
    }


def test_stretches_that_touch_are_one_and_the_shortest_is_seen() -> None:
    (lane,) = month([row(0, 0, 30), row(1, 30, 60), row(2, 90, 91)], MIDNIGHTS)
    (stretches,) = lane.stretches.values()
    assert stretches == [(24, 26), (27, 28)]


def test_ones_own_hide_what_of_others_would_be_in_the_same_place() -> None:
    (lane,) = month([row(0, 0, 120), row(1, 60, 90, is_mine=True)], MIDNIGHTS)
    look = Look(is_pending=False, is_gpu=True)
    assert lane.stretches == {(False, look): [(24, 26), (27, 28)], (True, look): [(26, 27)]}
    assert lane.cells[0].facts == Facts(2, 2.5, 1, 0, 2)


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23.0), ("2026-10-25", 25.0)])
def test_a_days_hours_are_as_many_as_it_has(day: str, hours: float) -> None:
    first = date.fromisoformat(day)
    days = [day_start(first + n * DAY, BERLIN) for n in range(3)]
    whole = row(0, 0, 1)._replace(start=days[0], end=days[1])
    (lane,) = month([whole], days)
    assert [cell.facts[1] for cell in lane.cells] == [hours, 0.0]
    assert list(lane.stretches.values()) == [[(0, UNITS)]]


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 3000)), max_size=30))
def test_a_months_cells_add_up(gaps: list[tuple[int, int]]) -> None:
    rows, minute = [], 0
    for number, (gap, length) in enumerate(gaps):
        rows.append(row(number, minute + gap, minute + gap + length))
        minute += gap + length
    days = [at(60 * (24 * n - 12)) for n in range(130)]
    cells = [cell for lane in month(rows, days) for cell in lane.cells]
    booked = sum(length for _, length in gaps) * 60
    assert sum(cell.seconds for cell in cells) == pytest.approx(booked)


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 90), st.booleans()), max_size=60))
def test_nothing_is_lost_or_moved_by_condensing(gaps: list[tuple[int, int, bool]]) -> None:
    rows, minute = [], 0
    for number, (gap, length, is_mine) in enumerate(gaps):
        rows.append(row(number, minute + gap, minute + gap + length, is_mine=is_mine))
        minute += gap + length
    for view in DENSITIES:
        found = list(condense(rows, VIEWER, span(view, BERLIN)))
        assert sum(one.count if isinstance(one, Block) else 1 for one in found) == len(rows)
        assert {one for one in rows if one.owner_id == VIEWER} <= set(found)
        assert {one.start for one in found} <= {one.start for one in rows}
