"""What `decide` orders while a booked preset fails: fallback, retries, and their moments."""

from typing import Any

import pytest

from bookings.planner import decide
from bookings.situation import Failure, Situation
from lanes.backoff import retry_wait
from tests.planner_facts import chosen, failed, lane, obeyed, ordered, reported, slot, t, target

A = slot("a")
TRYING = ordered("a", 1, A, at="14:00")
IN_D = ordered("d", 1, A, at="14:10", is_fallback=True)
D_STARTS = reported("d", "starting", "14:10:05")
D_IS_READY = reported("d", "ready", "14:11")
ONCE = (failed("a", "14:10"),)
TWICE = (failed("a", "14:10", count=2),)


def after(**facts: Any) -> Situation:
    """In a's slot, which is served by d since 14:10."""
    return lane(A, **{"order": IN_D, "report": D_IS_READY, "failures": ONCE, **facts})


# name, now, facts, (target, is_fallback, rule, reconsider_at)
Want = tuple[str | None, bool, int, str | None]
CASES: list[tuple[str, str, Situation, Want]] = [
    (
        "it has just failed",
        "14:10",
        lane(A, order=TRYING, failures=ONCE),
        ("d", True, 1, "14:10:30"),
    ),
    ("the default starts: no retry", "14:40", after(report=D_STARTS), ("d", True, 1, "15:00")),
    ("no report of the default yet", "14:40", after(report=None), ("d", True, 1, "15:00")),
    (
        "the failed one's report says nothing of the default",
        "14:40",
        after(report=reported("a", "failed", "14:10", 6)),
        ("d", True, 1, "15:00"),
    ),
    ("the default is ready: the wait begins", "14:11", after(), ("d", True, 1, "14:11:30")),
    ("a moment before the retry", "14:11:29", after(), ("d", True, 1, "14:11:30")),
    ("exactly at the retry", "14:11:30", after(), ("a", False, 1, "15:00")),
    ("the second wait is longer", "14:11:59", after(failures=TWICE), ("d", True, 1, "14:12")),
    (
        "the default was ready before the failure",
        "14:10:29",
        after(report=reported("d", "ready", "13:00", 5)),
        ("d", True, 1, "14:10:30"),
    ),
    (
        "the default ended without being a failure",
        "14:12:29",
        after(report=reported("d", "failed", "14:12")),
        ("d", True, 1, "14:12:30"),
    ),
    (
        "a failure of an older order says nothing",
        "14:40",
        after(report=reported("d", "failed", "14:12", 6)),
        ("d", True, 1, "15:00"),
    ),
    (
        "the retry is under way",
        "14:11:31",
        lane(A, order=ordered("a", 1, A, at="14:11:30"), failures=ONCE),
        ("a", False, 1, "15:00"),
    ),
    (
        "the retry failed",
        "14:15",
        lane(
            A,
            order=ordered("a", 1, A, at="14:11:30"),
            failures=(failed("a", "14:15", 2),),
        ),
        ("d", True, 1, "14:16"),
    ),
    (
        "the retry is ready, but not yet for a minute",
        "14:13:30",
        lane(A, order=TRYING, report=reported("a", "ready", "14:13"), failures=ONCE),
        ("a", False, 1, "15:00"),
    ),
    ("the retry has succeeded", "14:14", lane(A, order=TRYING), ("a", False, 1, "15:00")),
    (
        "no default: it stays",
        "14:10:10",
        lane(A, default=None, order=TRYING, failures=ONCE),
        ("a", False, 1, "14:10:30"),
    ),
    (
        "it is the default: it stays",
        "14:10:10",
        lane(A, default="a", order=TRYING, failures=ONCE),
        ("a", False, 1, "14:10:30"),
    ),
    (
        "it is an older revision of the default: it stays",
        "14:10:10",
        lane(A, default=target("a", revision=11), order=TRYING, failures=ONCE),
        ("a", False, 1, "14:10:30"),
    ),
    (
        "what is ready is not the fallback",
        "14:40",
        after(report=reported("c", "ready", "14:11")),
        ("d", True, 1, "15:00"),
    ),
    (
        "the default fails too: the booked one is wanted again",
        "14:10:20",
        after(failures=(*ONCE, failed("d", "14:10:20"))),
        ("a", False, 1, "14:10:30"),
    ),
    (
        "the default failed long ago and was not tried since",
        "14:10:20",
        lane(A, order=TRYING, failures=(*ONCE, failed("d", "09:00"))),
        ("a", False, 1, "14:10:30"),
    ),
    ("the slot ends", "15:00", after(failures=()), ("d", False, 5, None)),
    (
        "rule 2 falls back",
        "13:58:10",
        lane(A, order=ordered("a", 2, A), failures=(failed("a", "13:58"),)),
        ("d", True, 2, "13:58:30"),
    ),
    (
        "rule 3 falls back, and stays committed",
        "13:56:10",
        lane(
            A,
            order=ordered("d", 3, A, is_fallback=True),
            failures=(failed("a", "13:56"),),
        ),
        ("d", True, 3, "13:57"),
    ),
    (
        "a commitment survives its fallback when the estimate falls",
        "13:50:10",
        lane(
            A,
            order=ordered("d", 2, A, is_fallback=True),
            failures=(failed("a", "13:50"),),
        ),
        ("d", True, 2, "14:00"),
    ),
    (
        "it failed before its slot was near: the default serves at once",
        "13:58:10",
        lane(A, order=ordered("d"), failures=(failed("a", "13:57:50"),)),
        ("d", True, 2, "13:58:20"),
    ),
    (
        "it failed before its slot was near, and has rested",
        "13:58:10",
        lane(A, order=ordered("d"), failures=(failed("a", "13:57:40"),)),
        ("a", False, 2, "14:00"),
    ),
    (
        "a fallback goes on into the slot",
        "14:00",
        lane(
            A,
            order=ordered("d", 2, A, is_fallback=True),
            report=reported("d", "starting", "13:59"),
            failures=(failed("a", "13:58"),),
        ),
        ("d", True, 1, "15:00"),
    ),
    (
        "the whole GPU needs no fallback",
        "14:10",
        lane(slot(None), failures=ONCE),
        (None, False, 1, "15:00"),
    ),
    (
        "what stays before a whole GPU has no fallback",
        "13:57:10",
        lane(slot(None), order=ordered("a"), failures=(failed("a", "13:57"),)),
        ("a", False, 3, "13:57:30"),
    ),
    (
        "a choice that fails stays",
        "12:00:10",
        lane(choice=chosen("c"), order=ordered("c", 4), failures=(failed("c", "12:00"),)),
        ("c", False, 4, "12:00:30"),
    ),
    (
        "a default that fails stays",
        "12:00:10",
        lane(order=ordered("d"), failures=(failed("d", "12:00"),)),
        ("d", False, 5, "12:00:30"),
    ),
    (
        "another preset's failure means nothing",
        "14:10",
        lane(A, order=TRYING, failures=(failed("big", "14:09"),)),
        ("a", False, 1, "15:00"),
    ),
    (
        "an edited preset has not failed",
        "14:10:10",
        lane(A, order=TRYING, failures=(Failure(11, 3, t("14:10")),)),
        ("a", False, 1, "15:00"),
    ),
    (
        "the adjacent slot's preset is not held up by the last one's fallback",
        "15:00",
        lane(
            A,
            slot("big", "15:00", "16:00", 2),
            order=IN_D,
            report=D_STARTS,
        ),
        ("big", False, 1, "16:00"),
    ),
    (
        "another default takes the fallback over",
        "14:20",
        after(default=target("c"), report=D_STARTS),
        ("c", True, 1, "15:00"),
    ),
]


@pytest.mark.parametrize(
    ("now", "situation", "wanted"), [pytest.param(*case[1:], id=case[0]) for case in CASES]
)
def test_a_failing_preset_gives_this(now: str, situation: Situation, wanted: Want) -> None:
    decision = decide(situation, t(now))
    preset, is_fallback, rule, reconsider_at = wanted
    assert (decision.target and decision.target.preset) == preset
    assert (decision.is_fallback, decision.rule) == (is_fallback, rule)
    assert decision.reconsider_at == (t(reconsider_at) if reconsider_at else None)


@pytest.mark.parametrize(
    ("now", "situation"), [pytest.param(*case[1:3], id=case[0]) for case in CASES]
)
def test_carrying_it_out_orders_nothing_more(now: str, situation: Situation) -> None:
    carried_out = obeyed(situation, decide(situation, t(now)), t(now))
    again = obeyed(carried_out, decide(carried_out, t(now)), t(now))
    assert again.order == carried_out.order


def test_the_waits_grow_to_ten_minutes() -> None:
    waits = [retry_wait(count) for count in range(1, 9)]
    assert waits == [30, 60, 120, 240, 480, 600, 600, 600]


def test_a_count_below_one_is_no_failure() -> None:
    with pytest.raises(ValueError, match="starts at 1"):
        retry_wait(0)


@pytest.mark.parametrize("count", range(1, 8))
def test_the_booked_preset_is_tried_after_each_wait(count: int) -> None:
    situation = after(failures=(failed("a", "14:10", count),), report=D_IS_READY)
    decision = decide(situation, t("14:11"))
    assert decision.is_fallback
    assert decision.reconsider_at is not None
    assert (decision.reconsider_at - t("14:11")).total_seconds() == retry_wait(count)


def test_a_fallback_serves_the_booking_and_its_owner() -> None:
    decision = decide(after(), t("14:11"))
    assert (decision.booking_id, decision.owner_id) == (1, 101)
    assert decision.booking_preset == "a"
