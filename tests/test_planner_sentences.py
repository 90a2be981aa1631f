"""The sentences that come with decisions."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest

from bookings.planner import decide
from bookings.situation import Situation
from tests.planner_facts import chosen, failed, lane, ordered, reported, slot, t
from wire.words import clock

BERLIN = ZoneInfo("Europe/Berlin")
A, GPU = slot("a"), slot(None)
IN_D = ordered("d", 1, A, at="14:10", is_fallback=True)
FAILED: dict[str, Any] = {"order": ordered("a", 1, A), "failures": (failed("a", "14:10"),)}

SENTENCES: list[tuple[str, Situation, str]] = [
    ("12:00", lane(is_enabled=False), "nothing is loaded: the lane alpha is disabled"),
    ("14:30", lane(A), "loading a for the slot until 15:00 UTC: load ≈ 90 s"),
    (
        "14:30",
        lane(A, report=reported("a", "ready", "14:00")),
        "running a for the slot until 15:00 UTC",
    ),
    ("14:30", lane(GPU), "nothing is loaded: the whole GPU is booked until 15:00 UTC"),
    ("13:58", lane(A), "preloading a for the 14:00 UTC slot: load ≈ 90 s"),
    ("13:58", lane(A, zone=BERLIN), "preloading a for the 15:00 CET slot: load ≈ 90 s"),
    ("13:59", lane(GPU), "nothing is loaded: the whole GPU is booked from 14:00 UTC"),
    (
        "13:56",
        lane(A),
        "preloading a for the 14:00 UTC slot: load ≈ 90 s; there is no time to load d before it",
    ),
    (
        "13:57",
        lane(GPU),
        "nothing is loaded: there is no time to load d before the whole-GPU slot at 14:00 UTC",
    ),
    (
        "13:57",
        lane(GPU, order=ordered("c"), report=reported("c", "ready", "13:00")),
        "running c until the whole-GPU slot at 14:00 UTC; there is no time to load d before it",
    ),
    (
        "12:00",
        lane(choice=chosen("c")),
        "loading c as an administrator's choice until 18:00 UTC: load ≈ 30 s",
    ),
    (
        "12:00",
        lane(A, choice=chosen("c"), report=reported("c", "ready", "11:00")),
        "running c as an administrator's choice until the 14:00 UTC slot",
    ),
    (
        "12:00",
        lane(choice=chosen(None)),
        "nothing is loaded: an administrator chose so until 18:00 UTC",
    ),
    ("12:00", lane(), "loading d as the lane's default: load ≈ 60 s"),
    (
        "12:00",
        lane(A, report=reported("d", "ready", "11:00")),
        "running d as the lane's default; next slot at 14:00 UTC",
    ),
    (
        "12:00",
        lane(default=None),
        "nothing is loaded: no slot is in progress and the lane has no default",
    ),
    (
        "14:10:05",
        lane(A, **FAILED),
        "a, wanted for the slot until 15:00 UTC, failed once: d, the default, runs meanwhile; "
        "next attempt at 14:10:30 UTC",
    ),
    (
        "14:10:05",
        lane(A, **{**FAILED, "order": IN_D}),
        "a, wanted for the slot until 15:00 UTC, failed once: d, the default, runs meanwhile; "
        "next attempt 30 s after that is loaded",
    ),
    (
        "14:10:30",
        lane(A, **FAILED),
        "trying a again for the slot until 15:00 UTC: failed once, load ≈ 90 s",
    ),
    (
        "14:10:05",
        lane(A, default=None, **FAILED),
        "a, wanted for the slot until 15:00 UTC, failed once and the lane has no default to run "
        "meanwhile; next attempt at 14:10:30 UTC",
    ),
    (
        "14:10:05",
        lane(A, default="a", **FAILED),
        "a, wanted for the slot until 15:00 UTC, failed once and is the lane's default as well; "
        "next attempt at 14:10:30 UTC",
    ),
    (
        "14:10:05",
        lane(A, failures=(failed("a", "14:10", 2), failed("d", "14:09", 3))),
        "a, wanted for the slot until 15:00 UTC, failed twice and d, the default, fails too; "
        "next attempt at 14:11 UTC",
    ),
    (
        "12:00",
        lane(failures=(failed("d", "11:59:59", 3),)),
        "d, wanted as the lane's default, failed 3 times; next attempt at 12:01:59 UTC",
    ),
]


@pytest.mark.parametrize(("now", "situation", "words"), SENTENCES)
def test_a_decision_says_why(now: str, situation: Situation, words: str) -> None:
    assert decide(situation, t(now)).sentence == words


def test_another_day_is_named() -> None:
    assert clock(t("1 09:30"), t("12:00"), BERLIN) == "16 Jan 10:30 CET"


def test_another_year_is_named() -> None:
    assert clock(t("365 00:00"), t("12:00"), BERLIN) == "15 Jan 2031 01:00 CET"


def test_the_day_is_the_zones_day() -> None:
    assert clock(t("23:30"), t("12:00"), ZoneInfo("Asia/Kathmandu")) == "16 Jan 05:15 +0545"


def test_at_midnight_a_sentence_loses_its_date() -> None:
    situation = lane(slot("a", "1 09:00", "1 10:00"), order=ordered("d"))
    assert decide(situation, t("23:59")).reconsider_at == t("1 00:00")
    assert "next slot at 09:00 UTC" in decide(situation, t("1 00:00")).sentence
