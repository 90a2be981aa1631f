"""When models are warm: bands of draining, loading and being loaded ahead of slots."""

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookings.planner import decide
from bookings.situation import Claim, Closure, Margins, Situation, Standing, Target
from bookings.warmth import Band, BandKind, Course, bands, warm_at
from tests.builders import at

SMALL, LARGE = Target(1, "small", 30.0), Target(2, "large", 90.0)
MARGINS = Margins(buffer=60, stop=20, least_preload=180)


def claim(start: float, end: float, target: Target | None = LARGE, pk: int = 1) -> Claim:
    return Claim(pk, 1, at(start), at(end), at(-600), target)


def course(*claims: Claim, **changed: Any) -> Course:
    usual: dict[str, Any] = {"begins": at(0), "loaded": "small", "claims": claims, "idle": SMALL}
    return Course(**{**usual, "margins": MARGINS, "drain": 30.0, **changed})


def told(course: Course) -> list[tuple[str, float, float, str]]:
    """Kind, minutes from noon, and preset of each band."""
    begins = at(0)
    return [
        (
            str(band.kind),
            (band.start - begins).total_seconds() / 60,
            (band.end - begins).total_seconds() / 60,
            band.preset,
        )
        for band in bands(course)
    ]


BACK = [("drain", 120, 120.5, "small"), ("load", 120.5, 121, "small")]  # to the default


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Preloaded 180 s ahead: drained, loaded, then warm until the slot starts.
        (
            course(claim(60, 120)),
            [
                ("drain", 57, 57.5, "large"),
                ("load", 57.5, 59, "large"),
                ("warm", 59, 60, "large"),
                *BACK,
            ],
        ),
        # The default is booked: nothing is loaded, nothing drained.
        (course(claim(60, 120, SMALL)), [("warm", 57, 60, "small")]),
        # It starts now: the slot begins with the load.
        (course(claim(0, 120)), [("drain", 0, 0.5, "large"), ("load", 0.5, 2, "large"), *BACK]),
        # The whole GPU: the server is gone when it starts, 80 s ahead.
        (
            course(claim(61, 121, None)),
            [("drain", 59 + 2 / 3, 60 + 1 / 6, ""), ("load", 121, 121.5, "small")],
        ),
        # Nothing runs and there is no default.
        (
            course(claim(60, 120), loaded="", idle=None),
            [
                ("load", 57, 58.5, "large"),
                ("warm", 58.5, 60, "large"),
                ("drain", 120, 120.5, ""),
            ],
        ),
    ],
)
def test_a_slot_has_bands(found: Course, expected: list[tuple[str, float, float, str]]) -> None:
    near: list[Any] = [
        (k, pytest.approx(a), pytest.approx(b), preset) for k, a, b, preset in expected
    ]
    assert told(found) == near


def test_adjacent_slots_of_two_models_load_within_the_second() -> None:
    found = course(claim(0, 60, SMALL), claim(60, 120, LARGE, 2), begins=at(0), idle=None)
    assert told(found)[:2] == [("drain", 60, 60.5, "large"), ("load", 60.5, 62, "large")]


def test_adjacent_slots_of_one_model_load_nothing() -> None:
    found = course(claim(0, 60, LARGE), claim(60, 120, LARGE, 2), loaded="large", idle=None)
    assert told(found) == [("drain", 120, 120.5, "")]


def test_a_default_that_would_not_fit_between_two_slots_is_left_out() -> None:
    # 30 + 90 + 2 x 60 s are needed: 4 minutes.
    near = course(claim(0, 60, LARGE), claim(63.9, 120, LARGE, 2), loaded="large")
    assert told(near) == [("warm", 60, 63.9, "large"), *BACK]
    far = course(claim(0, 60, LARGE), claim(64, 120, LARGE, 2), loaded="large")
    assert told(far)[0] == ("drain", 60, 60.5, "small")


def test_a_load_longer_than_its_slot_ends_with_it() -> None:
    slow = Target(3, "slow", 36000.0)
    assert told(course(claim(0, 60, slow)))[1] == ("load", 0.5, 60, "slow")


def test_a_model_is_warm_when_drain_and_load_are_over() -> None:
    assert warm_at(at(0), 90.0) == at(1.5)
    assert warm_at(at(0), 90.0, 30.0) == at(2)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 90), st.booleans()), max_size=5),
    st.sampled_from([None, SMALL, LARGE]),
    st.sampled_from(["", "small", "large"]),
)
def test_bands_are_in_order_and_never_overlap(
    gaps: list[tuple[int, int, bool]], idle: Target | None, loaded: str
) -> None:
    claims, minute = [], 0
    for number, (gap, length, is_large) in enumerate(gaps):
        start, minute = minute + gap, minute + gap + length
        claims.append(claim(start, minute, LARGE if is_large else SMALL, number))
    found = bands(course(*claims, idle=idle, loaded=loaded))
    assert all(band.start < band.end for band in found)
    assert all(one.end <= other.start for one, other in pairwise(found))


@given(st.integers(1, 60), st.sampled_from([None, SMALL, LARGE]), st.sampled_from(["", "small"]))
def test_the_planner_turns_to_a_slot_when_its_first_band_begins(
    gap: int, idle: Target | None, loaded: str
) -> None:
    """What is drawn is what `decide` does, asked at the band's start and a second before it."""
    slot = claim(gap, gap + 60, LARGE)
    begins = next(b for b in bands(course(slot, idle=idle, loaded=loaded)) if b.booking_id).start
    runs = SMALL if loaded or idle in (None, SMALL) else LARGE
    order = Standing(runs, 1, at(-60), 5, None, None, False)
    situation = Situation("lane", True, (slot,), None, idle, order, None, (), MARGINS)
    assert decide(situation, begins).target == LARGE
    before = decide(situation, begins - timedelta(seconds=1)).target
    assert begins == at(0) or before == idle


def test_bands_say_whose_slot_they_are_for() -> None:
    assert bands(course(claim(60, 120)))[0] == Band(
        BandKind.DRAIN, at(57), at(57.5), "large", booking_id=1
    )


def test_maintenance_empties_a_lane_before_and_what_is_left_of_a_slot_loads_after_it() -> None:
    closure = Closure(at(90), at(150))
    assert told(course(claim(60, 180), closures=(closure,))) == [
        ("drain", 57, 57.5, "large"),
        ("load", 57.5, 59, "large"),
        ("warm", 59, 60, "large"),
        ("load", 150, 151.5, "large"),
        ("drain", 180, 180.5, "small"),
        ("load", 180.5, 181, "small"),
    ]
    free = told(course(closures=(closure,)))
    assert [band[:2] for band in free] == [("drain", 88 + 2 / 3), ("load", 150)]


@given(
    st.lists(st.integers(0, 90), min_size=2, max_size=8),
    st.lists(st.integers(0, 300), min_size=2, max_size=6, unique=True),
)
def test_no_band_lies_in_maintenance(gaps: list[int], edges: list[int]) -> None:
    claims, minute = [], 0
    for number, gap in enumerate(gaps):
        claims.append(claim(minute + gap, minute + gap + 20, (SMALL, LARGE, None)[number % 3]))
        minute += gap + 20
    times = sorted(edges)
    closures = tuple(
        Closure(at(start), at(end)) for start, end in zip(times[::2], times[1::2], strict=False)
    )
    for band in bands(course(*claims, closures=closures)):
        assert band.start < band.end
        assert not any(band.start < each.end and each.start < band.end for each in closures)  # type: ignore[operator]
