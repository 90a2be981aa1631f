"""The rules of `decide`: one worked situation a line, with every boundary.

a loads in 90 s, so it is preloaded 3 minutes before its slot (the least) and d, the default, which
loads in 60 s, is not worth loading in a gap under 60 + 90 + 2 x 60 = 270 s. big loads in 240 s:
preloaded 300 s before, gap 420 s. The whole GPU: stopped 80 s before, gap 60 + 20 + 120 = 200 s.
"""

from dataclasses import replace

import pytest

from bookings.planner import decide
from bookings.situation import Margins, Situation
from tests.planner_facts import bare, chosen, lane, obeyed, ordered, slot, t, target

A = slot("a")
BIG = slot("big")
GPU = slot(None)
LATER_A = slot("a", "15:00", "16:00", 2)
LATER_BIG = slot("big", "15:00", "16:00", 2)
LATER_GPU = slot(None, "15:00", "16:00", 2)
LATE = slot("a", confirmed="14:10")
NOTHING = lane(default=None)
HAS_D = ordered("d")
FOR_A_2 = ordered("a", 2, A)
FOR_A_3 = ordered("a", 3, A)
QUICK_A = slot("a", load=10)
SLOW_A = slot("a", load=600)
UNLOAD = chosen(None)

# name, now, facts, (target or None, rule, booking, reconsider_at or None)
Want = tuple[str | None, int, int | None, str | None]
CASES: list[tuple[str, str, Situation, Want]] = [
    # Rule 0
    ("disabled: nothing", "12:00", lane(is_enabled=False), (None, 0, None, None)),
    ("disabled in a slot", "14:30", lane(A, is_enabled=False), (None, 0, None, None)),
    (
        "disabled with a choice",
        "12:00",
        lane(choice=chosen("c"), is_enabled=False, order=HAS_D),
        (None, 0, None, None),
    ),
    # Rule 1
    ("a second before the start", "13:59:59", lane(A), ("a", 2, 1, "14:00")),
    ("exactly at the start", "14:00", lane(A), ("a", 1, 1, "15:00")),
    ("a second after the start", "14:00:01", lane(A), ("a", 1, 1, "15:00")),
    ("a second before the end", "14:59:59", lane(A), ("a", 1, 1, "15:00")),
    ("exactly at the end", "15:00", lane(A), ("d", 5, None, None)),
    ("a second after the end", "15:00:01", lane(A), ("d", 5, None, None)),
    ("the end without a default", "15:00", lane(A, default=None), (None, 5, None, None)),
    ("whole GPU, second before", "13:59:59", lane(GPU), (None, 2, 1, "14:00")),
    ("whole GPU, at the start", "14:00", lane(GPU, order=HAS_D), (None, 1, 1, "15:00")),
    ("whole GPU, at the end", "15:00", lane(GPU), ("d", 5, None, None)),
    ("a choice waits for the slot's end", "14:30", lane(A, choice=UNLOAD), ("a", 1, 1, "15:00")),
    ("confirmed late: not yet", "14:09:59", lane(LATE), ("a", 2, 1, "14:10")),
    ("confirmed late: from then on", "14:10", lane(LATE), ("a", 1, 1, "15:00")),
    (
        "confirmed after its end: never",
        "14:30",
        lane(slot("a", confirmed="15:00")),
        ("d", 5, None, None),
    ),
    # Adjacent slots
    ("adjacent, another preset: no preload", "14:59", lane(A, LATER_BIG), ("a", 1, 1, "15:00")),
    ("adjacent, another preset: at the seam", "15:00", lane(A, LATER_BIG), ("big", 1, 2, "16:00")),
    ("adjacent, same preset: at the seam", "15:00", lane(A, LATER_A), ("a", 1, 2, "16:00")),
    ("adjacent, whole GPU: before the seam", "14:59", lane(A, LATER_GPU), ("a", 1, 1, "15:00")),
    ("adjacent, whole GPU: at the seam", "15:00", lane(A, LATER_GPU), (None, 1, 2, "16:00")),
    ("adjacent, GPU then preset: no preload", "14:59", lane(GPU, LATER_A), (None, 1, 1, "15:00")),
    ("adjacent, GPU then preset: at the seam", "15:00", lane(GPU, LATER_A), ("a", 1, 2, "16:00")),
    # Rule 2
    ("just before the least preload", "13:56:59", lane(A, order=HAS_D), ("d", 5, None, "13:57")),
    ("exactly at the least preload", "13:57", lane(A, order=HAS_D), ("a", 2, 1, "14:00")),
    ("just after the least preload", "13:57:01", lane(A, order=HAS_D), ("a", 2, 1, "14:00")),
    ("just before a long load", "13:54:59", lane(BIG, order=HAS_D), ("d", 5, None, "13:55")),
    ("exactly at a long load", "13:55", lane(BIG, order=HAS_D), ("big", 2, 1, "14:00")),
    ("before the whole GPU's stop", "13:58:39", lane(GPU, order=HAS_D), ("d", 5, None, "13:58:40")),
    ("exactly at the whole GPU's stop", "13:58:40", lane(GPU, order=HAS_D), (None, 2, 1, "14:00")),
    (
        "other margins",
        "13:50",
        lane(A, order=HAS_D, margins=Margins(least_preload=600)),
        ("a", 2, 1, "14:00"),
    ),
    ("rule 2 goes before a choice", "13:57", lane(A, choice=UNLOAD), ("a", 2, 1, "14:00")),
    ("only the next one is preloaded", "13:59", lane(LATER_BIG, A), ("a", 2, 1, "14:00")),
    ("default = next: nothing to skip", "13:56", lane(A, default="a"), ("a", 3, 1, "13:57")),
    (
        "default = next, loaded: it stays",
        "13:56",
        lane(A, default="a", order=ordered("a")),
        ("a", 5, None, "13:57"),
    ),
    # Rule 3
    ("gap just over", "13:55:29", lane(A), ("d", 5, None, "13:55:30.000001")),
    ("gap exactly enough", "13:55:30", lane(A), ("d", 5, None, "13:55:30.000001")),
    ("gap just under", "13:55:30.000001", lane(A), ("a", 3, 1, "13:57")),
    ("gap a second under", "13:55:31", lane(A), ("a", 3, 1, "13:57")),
    ("short gap, default loaded", "13:55:31", lane(A, order=HAS_D), ("d", 5, None, "13:57")),
    ("long load, gap enough", "13:53", lane(BIG), ("d", 5, None, "13:53:00.000001")),
    ("long load, gap under", "13:53:01", lane(BIG), ("big", 3, 1, "13:55")),
    ("short gap, no default", "13:55:31", lane(A, default=None), (None, 5, None, "13:57")),
    ("short gap, unloaded by choice", "13:55:31", lane(A, choice=UNLOAD), (None, 4, None, "13:57")),
    (
        "gap enough for the choice",
        "13:56",
        lane(A, choice=chosen("c")),
        ("c", 4, None, "13:56:00.000001"),
    ),
    ("gap too short for the choice", "13:56:01", lane(A, choice=chosen("c")), ("a", 3, 1, "13:57")),
    (
        "what the last slot left is not the default",
        "13:56",
        lane(A, order=ordered("big", 1, slot("big", "13:00", "13:56", 9))),
        ("a", 3, 1, "13:57"),
    ),
    ("before whole GPU, gap enough", "13:56:40", lane(GPU), ("d", 5, None, "13:56:40.000001")),
    ("before whole GPU, nothing new", "13:56:41", lane(GPU), (None, 3, None, "13:58:40")),
    (
        "before whole GPU, what is loaded stays",
        "13:56:41",
        lane(GPU, order=ordered("big")),
        ("big", 3, None, "13:58:40"),
    ),
    (
        "before whole GPU, the default stays",
        "13:56:41",
        lane(GPU, order=HAS_D),
        ("d", 5, None, "13:58:40"),
    ),
    # Commitment
    ("estimate fell: rule 2 stays", "13:54", lane(A, order=FOR_A_2), ("a", 2, 1, "14:00")),
    (
        "estimate fell: rule 3 stays, and says when its reason holds again",
        "13:40",
        lane(QUICK_A, order=FOR_A_3),
        ("a", 3, 1, "13:56:50.000001"),
    ),
    ("estimate rose: still rule 2", "13:54", lane(SLOW_A, order=FOR_A_2), ("a", 2, 1, "14:00")),
    (
        "committed: a choice waits",
        "13:54",
        lane(A, order=FOR_A_2, choice=chosen("c")),
        ("a", 2, 1, "14:00"),
    ),
    ("cancelled", "13:54", lane(order=FOR_A_2), ("d", 5, None, None)),
    (
        "cancelled, and booked by another for the same time",
        "13:54",
        lane(slot("a", booking_id=8), order=FOR_A_2),
        ("d", 5, None, "13:55:30.000001"),
    ),
    (
        "moved",
        "13:54",
        lane(slot("a", "14:05"), order=FOR_A_2),
        ("d", 5, None, "14:00:30.000001"),
    ),
    ("another preset", "13:52", lane(BIG, order=FOR_A_2), ("d", 5, None, "13:53:00.000001")),
    ("now the whole GPU", "13:54", lane(GPU, order=FOR_A_2), ("d", 5, None, "13:56:40.000001")),
    ("its end moved", "13:54", lane(slot("a", end="14:20"), order=FOR_A_2), ("a", 2, 1, "14:00")),
    (
        "another one comes before it",
        "13:54",
        lane(A, slot("c", "13:59", "14:00", 5), order=FOR_A_2),
        ("d", 5, None, "13:55:30.000001"),
    ),
    (
        "an order of rule 1 commits to nothing",
        "13:54",
        lane(A, order=ordered("a", 1, A)),
        ("d", 5, None, "13:55:30.000001"),
    ),
    # Rule 4
    ("a choice is in force", "12:00", lane(choice=chosen("c")), ("c", 4, None, "18:00")),
    ("a second before its end", "17:59:59", lane(choice=chosen("c")), ("c", 4, None, "18:00")),
    ("exactly at its end", "18:00", lane(choice=chosen("c")), ("d", 5, None, None)),
    ("unloaded by choice", "12:00", lane(choice=UNLOAD, order=HAS_D), (None, 4, None, "18:00")),
    ("a slot began after it", "15:00", lane(A, choice=chosen("c")), ("d", 5, None, None)),
    (
        "made in the slot: it comes after",
        "15:00",
        lane(A, choice=chosen("c", made="14:30")),
        ("c", 4, None, "18:00"),
    ),
    (
        "made as the slot began: it comes after",
        "15:00",
        lane(A, choice=chosen("c", made="14:00")),
        ("c", 4, None, "18:00"),
    ),
    (
        "a slot confirmed late began after it",
        "15:00",
        lane(LATE, choice=chosen("c", made="14:05")),
        ("d", 5, None, None),
    ),
    (
        "it ends at the next start: the preload comes first",
        "13:50",
        lane(A, choice=chosen("c", until="14:00"), order=ordered("c", 4)),
        ("c", 4, None, "13:57"),
    ),
    (
        "it ends at the next start: the slot",
        "14:00",
        lane(A, choice=chosen("c", until="14:00"), order=ordered("c", 4)),
        ("a", 1, 1, "15:00"),
    ),
    (
        "it ends in a gap too short for the default",
        "13:56",
        lane(A, choice=chosen("c", until="13:56"), order=ordered("c", 4)),
        ("a", 3, 1, "13:57"),
    ),
    # Rule 5
    ("nothing configured", "12:00", NOTHING, (None, 5, None, None)),
    ("the default", "12:00", lane(), ("d", 5, None, None)),
    ("the default removed", "12:00", replace(NOTHING, order=HAS_D), (None, 5, None, None)),
    (
        "a pending booking is no claim",
        "14:30",
        lane(order=HAS_D),
        ("d", 5, None, None),
    ),
]


@pytest.mark.parametrize(
    ("now", "situation", "wanted"), [pytest.param(*case[1:], id=case[0]) for case in CASES]
)
def test_the_rules_give_this(now: str, situation: Situation, wanted: Want) -> None:
    decision = decide(situation, t(now))
    preset, rule, booking_id, reconsider_at = wanted
    assert (decision.target and decision.target.preset) == preset
    assert (decision.rule, decision.booking_id) == (rule, booking_id)
    assert not decision.is_fallback
    midnight = t("+1 00:00")
    assert decision.reconsider_at in ((t(reconsider_at),) if reconsider_at else (None, midnight))


@pytest.mark.parametrize(
    ("now", "situation"), [pytest.param(*case[1:3], id=case[0]) for case in CASES]
)
def test_a_carried_out_decision_is_decided_again(now: str, situation: Situation) -> None:
    first = decide(situation, t(now))
    carried_out = obeyed(situation, first, t(now))
    second = decide(carried_out, t(now))
    assert (second.target, second.rule) == (first.target, first.rule)
    assert carried_out.order == obeyed(carried_out, second, t(now)).order


def test_there_are_at_least_sixty_worked_situations() -> None:
    assert len({(case[1], case[2]) for case in CASES}) >= 60


def test_an_edit_of_the_default_outside_bookings_is_a_new_target() -> None:
    situation = lane(order=HAS_D, default="d")
    edited = replace(situation, default=target("d", revision=40))
    decision = decide(edited, t("12:00"))
    assert decision.target == target("d", revision=40)
    assert obeyed(edited, decision, t("12:00")).order != HAS_D


def test_only_a_new_target_raises_the_generation() -> None:
    situation = lane(A, order=FOR_A_2)
    starts = obeyed(situation, decide(situation, t("14:00")), t("14:00")).order
    assert starts is not None
    assert (starts.rule, starts.owner_id, starts.generation) == (1, 101, 7)
    assert starts.ordered_at == FOR_A_2.ordered_at


def test_the_owner_is_named_from_the_start_to_the_end_only() -> None:
    owners = [decide(lane(A), t(now)).owner_id for now in ("13:59:59", "14:00", "14:59", "15:00")]
    assert owners == [None, 101, 101, None]


def test_a_decision_keeps_what_its_commitment_is_known_by() -> None:
    decision = bare(decide(lane(A), t("13:58")))
    assert (decision.booking_start, decision.booking_preset) == (A.start, "a")
    assert decide(lane(GPU), t("14:10")).booking_preset == ""
