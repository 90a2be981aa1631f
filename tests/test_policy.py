"""Every rule of booking: kept, broken, and by how much."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookings.policy import (
    Approval,
    Broken,
    Claim,
    Code,
    Counted,
    Rules,
    is_late_cancel,
    judge,
    ledger,
    needs_approval,
    pending_ends,
)
from bookings.site_days import day_parts, week_of
from tests.builders import NOON, at

LANE, OTHER = 1, 2
BERLIN = ZoneInfo("Europe/Berlin")
DAY = 24 * 60


def claim(start: float = 60, end: float = 120, **changed: Any) -> Claim:
    return replace(Claim(LANE, at(start), at(end), preset=7), **changed)


def held(start: float, end: float, lane: int = LANE, **changed: Any) -> Counted:
    return replace(Counted(lane, at(start), at(end)), **changed)


def broken(
    rules: Rules, asked: Claim, *others: Counted, zone: Any = UTC, now: datetime = NOON
) -> tuple[Broken, ...]:
    return judge(rules, asked, ledger(rules, asked.lane, others, now, zone), now)


def codes(rules: Rules, asked: Claim, *others: Counted) -> list[str]:
    return [each.code.value for each in broken(rules, asked, *others)]


@pytest.mark.parametrize(
    ("rules", "fine", "wrong", "code"),
    [
        (Rules(may_book_gpu=False), claim(), claim(preset=None), "gpu_not_allowed"),
        (Rules(presets=frozenset({7})), claim(), claim(preset=8), "preset_not_allowed"),
        (Rules(presets=frozenset()), claim(preset=None), claim(), "preset_not_allowed"),
        (Rules(grid_minutes=30), claim(), claim(70, 120), "off_grid"),
        (Rules(grid_minutes=30), claim(), claim(60, 121), "off_grid"),
        (Rules(grid_minutes=30), claim(0.5, 60, starts_now=True), claim(0.5, 60), "off_grid"),
        (
            Rules(grid_minutes=30),
            claim(0.5, 60, starts_now=True),
            claim(0.5, 60.5, starts_now=True),
            "off_grid",
        ),
        (Rules(min_minutes=60), claim(), claim(60, 119), "too_short"),
        (Rules(max_minutes=60), claim(), claim(60, 121), "too_long"),
        (Rules(notice_minutes=60), claim(), claim(59, 120), "too_soon"),
        (Rules(notice_minutes=60), claim(), claim(0, 60, starts_now=True), "too_soon"),
        (Rules(ahead_days=1), claim(DAY, DAY + 60), claim(DAY + 1, DAY + 60), "too_far_ahead"),
        (Rules(day_hours=1), claim(), claim(60, 121), "day_full"),
        (Rules(week_hours=1), claim(), claim(60, 121), "week_full"),
    ],
)
def test_a_rule_is_kept_or_broken(rules: Rules, fine: Claim, wrong: Claim, code: str) -> None:
    assert codes(rules, fine) == []
    assert codes(rules, wrong) == [code]


def test_who_may_not_book_at_all_is_told_nothing_else_of_rights() -> None:
    rules = Rules(may_book=False, may_book_gpu=False)
    assert codes(rules, claim(preset=None)) == ["not_allowed"]


def test_everything_that_is_broken_is_told_at_once_with_numbers() -> None:
    rules = Rules(
        max_minutes=120, notice_minutes=90, week_hours=10, bookings_ahead=1, grid_minutes=60
    )
    asked = claim(60, 300 + 0.5)
    found = {each.code: each for each in broken(rules, asked, held(-480, 0), held(600, 601))}
    assert set(found) == {
        Code.OFF_GRID,
        Code.TOO_LONG,
        Code.TOO_SOON,
        Code.WEEK_FULL,
        Code.TOO_MANY_AHEAD,
    }
    assert (found[Code.TOO_LONG].limit, found[Code.TOO_LONG].asked) == (120, 240.5)
    assert found[Code.TOO_SOON].over == 30
    assert found[Code.TOO_MANY_AHEAD].used == 1


def test_a_week_tells_what_is_booked_asked_and_too_much() -> None:
    (week,) = broken(Rules(week_hours=10), claim(60, 300), held(-480, 0))
    assert (week.used, week.asked, week.over) == (8, 4, 2)


def test_a_quota_of_a_lane_counts_that_lane_alone() -> None:
    everywhere, here = (Rules(day_hours=2, of_lane=frozenset(of)) for of in ((), {"day_hours"}))
    elsewhere = held(180, 270, OTHER)
    assert codes(everywhere, claim(), elsewhere) == ["day_full"]
    assert codes(here, claim(), elsewhere) == []
    assert codes(here, claim(), held(180, 270)) == ["day_full"]


def test_only_bookings_to_come_lie_ahead() -> None:
    rules = Rules(bookings_ahead=1)
    running, missed = held(-60, 30), held(60, 90, is_claim=False)
    assert codes(rules, claim(), running, missed) == []
    assert codes(rules, claim(), held(300, 360)) == ["too_many_ahead"]
    assert codes(rules, claim(0, 60, starts_now=True), held(300, 360)) == []


def test_what_a_booking_has_already_is_not_held_against_it() -> None:
    before = held(60, 180)
    rules = Rules(day_hours=1, bookings_ahead=1, notice_minutes=300, grid_minutes=7)
    assert codes(rules, claim(60, 180, preset=8, before=before), held(300, 400)) == []
    assert codes(rules, claim(60, 181, before=before)) == ["off_grid", "day_full"]
    moved = claim(61, 180, before=before)
    assert codes(rules, moved) == ["off_grid", "too_soon"]


def test_a_day_that_gets_no_more_is_not_told() -> None:
    rules = Rules(day_hours=1)
    tomorrow = 12 * 60
    before = held(tomorrow - 120, tomorrow)  # too much, of a time with other rules
    later = claim(tomorrow - 120, tomorrow + 30, before=before)
    assert codes(rules, later) == []
    assert codes(rules, replace(later, end=at(tomorrow + 61))) == ["day_full"]


def test_a_week_that_gets_no_more_is_not_told() -> None:
    before = held(60, 180)
    rules = Rules(week_hours=1)
    assert codes(rules, claim(90, 210, before=before)) == []
    assert codes(rules, claim(90, 211, before=before)) == ["week_full"]


def test_a_night_of_the_change_counts_real_hours() -> None:
    start = datetime(2026, 10, 25, 1, 0, tzinfo=BERLIN).astimezone(UTC)
    end = datetime(2026, 10, 25, 4, 0, tzinfo=BERLIN).astimezone(UTC)
    asked, now = Claim(LANE, start, end, 7), start - timedelta(days=1)
    (day,) = broken(Rules(day_hours=3), asked, zone=BERLIN, now=now)
    assert (day.asked, day.over) == (4, 1)
    assert broken(Rules(day_hours=4), asked, zone=BERLIN, now=now) == ()


@pytest.mark.parametrize(
    ("approval", "asked", "waits"),
    [
        (Approval.NEVER, claim(), False),
        (Approval.ALWAYS, claim(), True),
        (Approval.GPU, claim(), False),
        (Approval.GPU, claim(preset=None), True),
        (Approval.BEYOND, claim(60, 180), False),
        (Approval.BEYOND, claim(60, 181), True),
    ],
)
def test_what_an_administrator_must_approve(approval: Approval, asked: Claim, waits: bool) -> None:
    rules = Rules(approval=approval, approval_hours=2)
    assert needs_approval(rules, asked, ledger(rules, LANE, (), NOON, UTC)) is waits


BESIDE = [  # what the member holds, and how many of its minutes are one slot with 13:00 to 14:00
    ([], 0),
    ([held(0, 60)], 60),
    ([held(120, 150)], 30),
    ([held(0, 60), held(120, 150)], 90),
    ([held(-60, 0), held(0, 60)], 120),  # what touches one that touches it
    ([held(-60, 0)], 0),
    ([held(0, 45)], 0),  # a break of a quarter of an hour
    ([held(0, 45.5)], 45.5),
    ([held(134, 150)], 16),
    ([held(135, 150)], 0),
    ([held(0, 60, OTHER)], 0),
    ([held(0, 60, is_claim=False)], 0),  # given up, or nobody came
    ([held(60, 120)], 0),  # that is in its way
]


@pytest.mark.parametrize(("others", "minutes"), BESIDE)
def test_slots_that_touch_are_one_for_the_longest_slot(
    others: list[Counted], minutes: float
) -> None:
    found = broken(Rules(max_minutes=60), claim(), *others)
    assert [(each.code, each.used, each.over) for each in found] == (
        [(Code.TOO_LONG, minutes, minutes)] if minutes else []
    )


@pytest.mark.parametrize(("others", "minutes"), BESIDE)
def test_slots_that_touch_are_one_for_approval(others: list[Counted], minutes: float) -> None:
    rules = Rules(approval=Approval.BEYOND, approval_hours=1)
    used = ledger(rules, LANE, others, NOON, UTC)
    assert needs_approval(rules, claim(), used) is bool(minutes)


@pytest.mark.parametrize(
    ("span", "is_fine"),
    [((0, 60), True), ((0, 45), True), ((15, 60), True), ((0, 61), False), ((-1, 60), False)],
)
def test_what_a_booking_has_already_is_no_longer_for_what_touches_it(
    span: tuple[float, float], is_fine: bool
) -> None:
    asked = claim(*span, before=held(0, 60), preset=8)
    assert (codes(Rules(max_minutes=60), asked, held(60, 120)) == []) is is_fine


def test_a_booking_of_another_lane_or_member_is_new_to_what_it_touches() -> None:
    for before in (held(60, 120, OTHER), held(60, 120, lane=0, is_claim=False)):
        assert codes(Rules(max_minutes=60), claim(before=before), held(0, 60)) == ["too_long"]


@given(st.permutations([(0, 60), (60, 120), (120, 180), (180, 240), (245, 300)]))
def test_no_order_of_pieces_gets_round_the_longest_slot(pieces: list[tuple[int, int]]) -> None:
    rules, taken = Rules(max_minutes=120), list[Counted]()
    for start, end in pieces:
        if not broken(rules, claim(start, end), *taken, now=at(-60)):
            taken.append(held(start, end))
    runs: list[float] = [0.0]
    ends: datetime | None = None
    for each in sorted(taken, key=lambda one: one.start):
        is_beside = ends is not None and each.start - ends < timedelta(minutes=15)
        length = (each.end - each.start) / timedelta(minutes=1)
        runs = [*runs[:-1], runs[-1] + length] if is_beside else [*runs, length]
        ends = each.end
    assert max(runs) <= 120


def test_a_pending_booking_lapses_after_its_hours_or_at_its_start() -> None:
    rules = Rules(pending_hours=2)
    assert pending_ends(rules, at(0), at(500)) == at(120)
    assert pending_ends(rules, at(0), at(60)) == at(60)
    assert pending_ends(rules, at(0), at(-1)) == at(0)
    assert pending_ends(Rules(), at(0), at(60)) is None


def test_a_cancellation_is_late_within_its_minutes() -> None:
    rules = Rules(late_cancel_minutes=30)
    assert not is_late_cancel(rules, at(60), at(30))
    assert is_late_cancel(rules, at(60), at(30.1))
    assert not is_late_cancel(Rules(), at(60), at(59))


spans = st.tuples(st.integers(-3 * DAY, 9 * DAY), st.integers(1, DAY))
zones = st.sampled_from(
    [UTC, BERLIN, ZoneInfo("America/New_York"), ZoneInfo("Australia/Lord_Howe")]
)
nights = st.sampled_from(
    [
        datetime(2026, *night, 12, tzinfo=UTC)
        for night in ((3, 7), (3, 28), (4, 4), (10, 3), (10, 24), (10, 31))
    ]
)


@given(
    spans,
    st.lists(spans, max_size=6),
    st.integers(1, 24),
    st.integers(1, 60),
    zones,
    nights,
)
def test_quotas_are_the_sums_of_what_lies_in_each_day_and_week(
    wish: tuple[int, int],
    others: list[tuple[int, int]],
    daily: int,
    weekly: int,
    zone: Any,
    now: datetime,
) -> None:
    def minutes_of(span: tuple[int, int]) -> list[datetime]:
        return [now + timedelta(minutes=span[0] + n) for n in range(span[1])]

    def times(span: tuple[int, int]) -> tuple[datetime, datetime]:
        start = now + timedelta(minutes=span[0])
        return start, start + timedelta(minutes=span[1])

    days: dict[Any, int] = {}
    weeks: dict[Any, int] = {}
    for span in [wish, *others]:
        for minute in minutes_of(span):
            day = minute.astimezone(zone).date()
            days[day] = days.get(day, 0) + 1
            weeks[week_of(day)] = weeks.get(week_of(day), 0) + 1
    touched = {day for day, _ in day_parts(*times(wish), zone)}
    full = {day for day in touched if days[day] > daily * 60}
    weeks_touched = {week_of(day) for day in touched}
    full_weeks = {week for week in weeks_touched if weeks[week] > weekly * 60}
    rules = Rules(day_hours=daily, week_hours=weekly)
    asked = Claim(LANE, *times(wish), preset=7)
    found = broken(rules, asked, *(Counted(LANE, *times(s)) for s in others), zone=zone, now=now)
    assert {b.day for b in found if b.code is Code.DAY_FULL} == full
    assert {week_of(b.day) for b in found if b.code is Code.WEEK_FULL and b.day} == full_weeks
