"""Maintenance in the planner's decision: rule 0, and what is left of bookings."""

from datetime import datetime

import pytest

from bookings.closures import joined, pieces
from bookings.interval import Interval
from bookings.planner import decide
from bookings.situation import Claim, Closure, Situation
from tests.planner_facts import chosen, closed, lane, ordered, slot, t

SLOT = slot("a", "14:00", "16:00")
WINDOW = closed("15:00", "17:00", "new fans")


def answer(situation: Situation, moment: str) -> tuple[int, str | None]:
    decision = decide(situation, t(moment))
    return decision.rule, decision.target.preset if decision.target else None


@pytest.mark.parametrize(
    ("claims", "closures", "moment", "expected"),
    [
        ([], [WINDOW], "14:00", (5, "d")),
        ([], [WINDOW], "14:58:39", (5, "d")),
        ([], [WINDOW], "14:58:40", (0, None)),  # stop + buffer before
        ([], [WINDOW], "15:00", (0, None)),
        ([], [WINDOW], "16:59:59", (0, None)),
        ([], [WINDOW], "17:00", (5, "d")),
        ([], [closed("15:00")], "+9 12:00", (0, None)),
        ([SLOT], [WINDOW], "13:58", (2, "a")),
        ([SLOT], [WINDOW], "14:59:59", (1, "a")),  # in progress it is served to the last
        ([SLOT], [WINDOW], "15:00", (0, None)),
        ([SLOT], [WINDOW], "17:00", (5, "d")),
        ([SLOT], [closed("15:00", "15:30")], "15:29:59", (0, None)),
        ([SLOT], [closed("15:00", "15:30")], "15:30", (1, "a")),  # the rest comes back
        ([SLOT], [closed("13:00", "14:00")], "13:59", (0, None)),  # nothing is preloaded
        ([SLOT], [closed("13:00", "14:00")], "14:00", (1, "a")),
        ([SLOT], [closed("13:59", "14:01")], "13:57:30", (5, "d")),  # nor before it
        ([SLOT], [closed("13:59", "14:01")], "13:57:40", (0, None)),
        ([SLOT], [closed("14:02", "14:10")], "13:58", (2, "a")),
        ([slot(None, "14:00", "16:00")], [WINDOW], "15:30", (0, None)),
        ([SLOT], [closed("14:30", "15:00"), closed("14:50", "15:10")], "15:05", (0, None)),
        ([SLOT], [closed("14:30", "15:00"), closed("14:50", "15:10")], "15:10", (1, "a")),
    ],
)
def test_each_case(
    claims: list[Claim], closures: list[Closure], moment: str, expected: tuple[int, str | None]
) -> None:
    facts = lane(*claims, closures=tuple(closures), order=ordered("d"))
    assert answer(facts, moment) == expected


def test_a_choice_does_not_go_before_it() -> None:
    facts = lane(closures=(WINDOW,), choice=chosen("c"))
    assert answer(facts, "14:00") == (4, "c")
    assert answer(facts, "15:00") == (0, None)


@pytest.mark.parametrize(
    ("closure", "moment", "words"),
    [
        (WINDOW, "14:59", "nothing is loaded: maintenance begins at 15:00 UTC (new fans)"),
        (WINDOW, "15:00", "nothing is loaded: maintenance until 17:00 UTC (new fans)"),
        (closed("15:00"), "15:00", "nothing is loaded: maintenance until it is ended"),
    ],
)
def test_it_says_why(closure: Closure, moment: str, words: str) -> None:
    assert decide(lane(closures=(closure,)), t(moment)).sentence == words


def test_it_asks_again_when_it_empties_begins_and_ends() -> None:
    facts = lane(closures=(WINDOW,), order=ordered("d"))
    moments: list[datetime] = []
    moment: datetime | None = t("14:00")
    while moment is not None and len(moments) < 4:
        moment = decide(facts, moment).reconsider_at
        if moment is not None:
            moments.append(moment)
    assert moments[:3] == [t("14:58:40"), t("15:00"), t("17:00")]


@pytest.mark.parametrize(
    ("closures", "left"),
    [
        ([], [("14:00", "16:00")]),
        ([closed("12:00", "14:00")], [("14:00", "16:00")]),
        ([closed("16:00", "17:00")], [("14:00", "16:00")]),
        ([closed("13:00", "14:30")], [("14:30", "16:00")]),
        ([closed("15:00")], [("14:00", "15:00")]),
        ([closed("14:30", "15:00")], [("14:00", "14:30"), ("15:00", "16:00")]),
        ([closed("13:00", "17:00")], []),
        ([closed("14:10", "14:20"), closed("15:00")], [("14:00", "14:10"), ("14:20", "15:00")]),
    ],
)
def test_what_is_left_of_a_booking(closures: list[Closure], left: list[tuple[str, str]]) -> None:
    found = [(each.active_from, each.end) for each in pieces([SLOT], closures)]
    assert found == [(t(start), t(end)) for start, end in left]


def test_what_is_held_and_what_is_closed_are_joined() -> None:
    held = [Interval(t("14:00"), t("15:00")), Interval(t("18:00"), t("19:00"))]
    found = joined(held, [closed("14:30", "16:00"), closed("20:00")], t("+1 00:00"))
    assert [(each.start, each.end) for each in found] == [
        (t("14:00"), t("16:00")),
        (t("18:00"), t("19:00")),
        (t("20:00"), t("+1 00:00")),
    ]
