"""The nearest slots that are free and break no rule."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookings.feasible import MOST_OFFERED, Judge, Market, fitting_length, nearest_slots
from bookings.policy import Claim, Counted, Rules, judge, ledger
from bookings.refusals import Interval
from tests.builders import NOON, at

LANE = 1
DAY = 24 * 60


def minutes(rules: Rules, wish: tuple[int, int], *busy: tuple[int, int], **facts: Any) -> list[Any]:
    """The offers in minutes after noon."""
    claim = Claim(LANE, at(wish[0]), at(wish[1]), facts.get("preset", 7))
    found = offers(rules, claim, [Interval(at(a), at(b)) for a, b in busy], **facts)
    return [tuple((t - NOON) // timedelta(minutes=1) for t in (s.start, s.end)) for s in found]


def offers(
    rules: Rules,
    claim: Claim,
    busy: list[Interval],
    others: tuple[Counted, ...] = (),
    zone: Any = UTC,
    now: datetime = NOON,
    **_: Any,
) -> tuple[Interval, ...]:
    market = Market(busy, now, now + timedelta(days=366))
    return nearest_slots(Judge(rules, ledger(rules, LANE, others, now, zone), now), claim, market)


def test_before_after_now_and_tomorrow() -> None:
    assert minutes(Rules(), (60, 90), (60, 90)) == [(0, 30), (30, 60), (90, 120)]
    tomorrow = (DAY + 60, DAY + 90)
    assert minutes(Rules(), (60, 90), (31, 40), (60, 90)) == [(1, 31), (90, 120), tomorrow]


def test_they_keep_the_grid_the_notice_and_the_horizon() -> None:
    rules = Rules(grid_minutes=60, notice_minutes=60, ahead_days=1)
    found = minutes(rules, (60, 90), (60, 125))
    assert found == [(180, 240), (DAY - 60, DAY), (DAY, DAY + 60)] or found[0] == (180, 240)
    assert all(60 <= start <= DAY and start % 60 == 0 for start, _ in found)


@pytest.mark.parametrize(
    ("rules", "wanted", "length"),
    [
        (Rules(), 50, 50),
        (Rules(min_minutes=60), 50, 60),
        (Rules(max_minutes=40), 50, 40),
        (Rules(grid_minutes=30), 50, 60),
        (Rules(grid_minutes=30, max_minutes=45), 50, 30),
        (Rules(grid_minutes=60, max_minutes=45), 50, 0),
    ],
)
def test_lengths_are_made_to_fit(rules: Rules, wanted: int, length: int) -> None:
    assert fitting_length(rules, timedelta(minutes=wanted)) == timedelta(minutes=length)


def test_what_is_left_of_a_quota_comes_at_the_wished_start() -> None:
    used = (Counted(LANE, at(-480), at(0)),)
    found = minutes(Rules(week_hours=10), (60, 300), others=used)
    assert found[0] == (60, 180)  # 2 h of the 4
    assert all(start >= 5 * DAY - 720 for start, _ in found[1:])  # the rest in another week


def test_nothing_is_offered_to_who_may_not_book() -> None:
    assert minutes(Rules(may_book=False), (60, 90)) == []
    assert minutes(Rules(presets=frozenset({8})), (60, 90)) == []


def test_a_slot_that_begins_now_says_so() -> None:
    claim = Claim(LANE, at(0), at(90), 7, starts_now=True)
    first = offers(Rules(max_minutes=60), claim, [])[0]
    assert (first.start, first.end, first.is_now) == (at(0), at(60), True)
    (first, *_) = offers(Rules(grid_minutes=60), Claim(LANE, at(0), at(90), 7, starts_now=True), [])
    assert first.is_now
    assert first.end == at(120)


spans = st.tuples(st.integers(0, 4 * DAY), st.integers(1, 600))
rule_sets = st.builds(
    Rules,
    grid_minutes=st.sampled_from([0, 0, 15, 30, 60]),
    min_minutes=st.sampled_from([0, 30, 60]),
    max_minutes=st.sampled_from([0, 60, 240]),
    notice_minutes=st.sampled_from([0, 45, 600]),
    ahead_days=st.sampled_from([0, 2, 7]),
    day_hours=st.sampled_from([0, 2, 8]),
    week_hours=st.sampled_from([0, 10]),
    bookings_ahead=st.sampled_from([0, 3]),
)
zones = st.sampled_from(
    [UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York"), ZoneInfo("Australia/Lord_Howe")]
)
nights = st.sampled_from(
    [datetime(2026, *night, 12, tzinfo=UTC) for night in ((3, 28), (4, 4), (10, 3), (10, 31))]
)


@given(rule_sets, spans, st.lists(spans, max_size=8), st.lists(spans, max_size=4), zones, nights)
def test_every_offer_is_free_apart_and_breaks_nothing(
    rules: Rules,
    wish: tuple[int, int],
    held: list[tuple[int, int]],
    mine: list[tuple[int, int]],
    zone: Any,
    now: datetime,
) -> None:
    busy = disjoint(now, held)
    others = tuple(Counted(2, slot.start, slot.end) for slot in disjoint(now, mine))
    (wanted,) = disjoint(now, [wish])
    claim = Claim(LANE, wanted.start, wanted.end, 7)
    found = offers(rules, claim, busy, others, zone, now)
    assert len(found) <= MOST_OFFERED
    assert [slot.start for slot in found] == sorted(slot.start for slot in found)
    used = ledger(rules, LANE, others, now, zone)
    for n, slot in enumerate(found):
        taken = [*busy, *(other for m, other in enumerate(found) if m != n)]
        assert all(slot.end <= each.start or each.end <= slot.start for each in taken)
        asked = Claim(LANE, slot.start, slot.end, 7, starts_now=slot.is_now)
        assert slot.start >= now
        assert judge(rules, asked, used, now) == ()


def test_beside_slots_of_ones_own_what_is_left_and_what_is_apart_is_offered() -> None:
    rules, own = Rules(max_minutes=120), (Counted(LANE, at(0), at(90)),)
    found = offers(rules, Claim(LANE, at(90), at(150), 7), [Interval(at(0), at(90))], own)
    assert Interval(at(90), at(120)) in found
    assert any(slot.start >= at(105) for slot in found)


@given(spans, st.lists(spans, max_size=8))
def test_without_rules_no_free_slot_is_nearer(
    wish: tuple[int, int], held: list[tuple[int, int]]
) -> None:
    busy = disjoint(NOON, held)
    (wanted,) = disjoint(NOON, [wish])
    length = wanted.end - wanted.start

    def is_free(start: datetime) -> bool:
        return all(start + length <= b.start or b.end <= start for b in busy)

    def first(step: int) -> datetime | None:
        moments = (wanted.start + timedelta(minutes=step * n) for n in range(10 * DAY))
        return next((moment for moment in moments if moment < NOON or is_free(moment)), None)

    found = {slot.start for slot in offers(Rules(), Claim(LANE, wanted.start, wanted.end, 7), busy)}
    near = [moment for moment in (first(-1), first(1)) if moment and moment >= NOON]
    assert min(near, key=lambda moment: abs(moment - wanted.start)) in found


def disjoint(now: datetime, spans: list[tuple[int, int]]) -> list[Interval]:
    """Those of the spans that overlap none before them, by start."""
    kept: list[Interval] = []
    for start, length in spans:
        begins = now + timedelta(minutes=start)
        slot = Interval(begins, begins + timedelta(minutes=length))
        if all(slot.end <= other.start or other.end <= slot.start for other in kept):
            kept.append(slot)
    return sorted(kept, key=lambda slot: slot.start)
