"""Which of several rows holds, field by field."""

from dataclasses import replace
from typing import Any

import pytest

from bookings.policy import Approval, Rules
from bookings.policy_levels import Said, resolve

SITE, GROUP = Said(), Said(is_of_group=True)
LANE, BOTH = Said(is_of_lane=True), Said(is_of_lane=True, is_of_group=True)


def test_without_rows_everything_is_allowed() -> None:
    assert resolve([]) == Rules()
    assert resolve([SITE, GROUP, LANE, BOTH]) == Rules()


def test_per_field_the_most_specific_row_that_says_it_wins() -> None:
    rows = [
        replace(SITE, max_minutes=1, grid_minutes=1, min_minutes=1, ahead_days=1),
        replace(GROUP, max_minutes=2, grid_minutes=2, min_minutes=2),
        replace(LANE, max_minutes=3, grid_minutes=3),
        replace(BOTH, max_minutes=4),
    ]
    found = resolve(rows)
    assert found == resolve(rows[::-1])
    limits = (found.max_minutes, found.grid_minutes, found.min_minutes, found.ahead_days)
    assert limits == (4, 3, 2, 1)


@pytest.mark.parametrize(
    ("name", "values", "best"),
    [
        ("max_minutes", (60, 120), 120),
        ("max_minutes", (60, 0), 0),
        ("week_hours", (10.0, 5.0), 10.0),
        ("bookings_ahead", (0, 5), 0),
        ("no_show_minutes", (15, 30), 30),
        ("pending_hours", (2.0, 0.0), 0.0),
        ("min_minutes", (30, 15), 15),
        ("grid_minutes", (0, 15), 0),
        ("notice_minutes", (10, 5), 5),
        ("late_cancel_minutes", (10, 60), 10),
        ("may_book", (False, True), True),
        ("may_book_gpu", (False, False), False),
    ],
)
def test_of_several_groups_the_most_generous_wins(name: str, values: Any, best: Any) -> None:
    rows = [replace(GROUP, **{name: value}) for value in values]
    assert getattr(resolve(rows), name) == best
    assert getattr(resolve(rows[::-1]), name) == best


def test_a_limit_of_none_on_a_lane_lifts_that_of_everybody() -> None:
    assert resolve([replace(SITE, max_minutes=60), replace(LANE, max_minutes=0)]).max_minutes == 0


def test_quotas_of_a_lane_count_that_lane() -> None:
    rows = [replace(SITE, day_hours=8, week_hours=40), replace(LANE, day_hours=2)]
    assert resolve(rows).of_lane == {"day_hours"}
    assert resolve([replace(BOTH, bookings_ahead=2)]).of_lane == {"bookings_ahead"}


@pytest.mark.parametrize(
    ("approvals", "mildest"),
    [
        ([(Approval.ALWAYS, 0.0), (Approval.NEVER, 0.0)], (Approval.NEVER, 0.0)),
        ([(Approval.ALWAYS, 0.0), (Approval.BEYOND, 4.0)], (Approval.BEYOND, 4.0)),
        ([(Approval.BEYOND, 4.0), (Approval.BEYOND, 8.0)], (Approval.BEYOND, 8.0)),
        ([(Approval.GPU, 0.0), (Approval.BEYOND, 8.0)], (Approval.GPU, 0.0)),
    ],
)
def test_of_approvals_the_mildest_wins(
    approvals: list[tuple[Approval, float]], mildest: tuple[Approval, float]
) -> None:
    rows = [replace(GROUP, approval=kind, approval_hours=hours) for kind, hours in approvals]
    found = resolve(rows)
    assert (found.approval, found.approval_hours) == mildest


def test_presets_of_several_groups_add_up_and_all_beats_some() -> None:
    first = replace(GROUP, is_any_preset=False, presets=frozenset({1}))
    second = replace(GROUP, is_any_preset=False, presets=frozenset({2}))
    assert resolve([first, second]).presets == frozenset({1, 2})
    assert resolve([first, replace(GROUP, is_any_preset=True)]).presets is None
    assert resolve([first, replace(LANE, is_any_preset=True)]).presets is None
    assert resolve([replace(LANE, is_any_preset=False)]).presets == frozenset()
