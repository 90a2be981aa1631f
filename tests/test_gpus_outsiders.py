"""Who is taken for an outsider, case by case and by properties."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.gpus.outsiders import CLEAN_POLLS, FREE_BYTES, ODD_POLLS, Poll, Verdict, judge
from lanes.gpus.readings import Holder

GIB = 2**30
TOTAL = 24 * GIB
BOB = Holder(4711, 99, "bob", "python train.py", 11 * GIB)
EVE = Holder(5000, 120, "eve", "python", 2 * GIB)
OURS = Holder(300, 50, "slotserve", "llama-server", 8 * GIB, lane="big")
DYING = Holder(4711, memory_bytes=11 * GIB)  # listed, but gone


def poll(*holders: Holder, gap: int = 0, has_server: bool = False) -> Poll:
    """A reading in which the processes and `gap` bytes besides are on the card."""
    used = sum(holder.memory_bytes or 0 for holder in holders) + gap
    return Poll(used, TOTAL, holders, has_server)


def after(*polls: Poll) -> Verdict:
    """The verdict of these polls, one after the other."""
    verdict = Verdict()
    for each in polls:
        verdict = judge(verdict, each)
    return verdict


def test_an_outsider_is_one_after_two_clean_polls() -> None:
    assert after(poll(BOB)).outsiders == ()
    assert not after(poll(BOB)).is_settled
    verdict = after(poll(BOB), poll(BOB))
    assert verdict.is_settled
    assert (verdict.outsiders, verdict.outside_bytes) == ((BOB,), 11 * GIB)


def test_a_lane_s_own_processes_are_none() -> None:
    verdict = after(*[poll(OURS, BOB, has_server=True)] * 2)
    assert verdict.outsiders == (BOB,)


def test_an_outsider_who_leaves_is_one_until_two_clean_polls() -> None:
    there = after(*[poll(BOB)] * 2)
    assert judge(there, poll()).outsiders == (BOB,)
    assert judge(judge(there, poll()), poll()).outsiders == ()


@pytest.mark.parametrize(
    "odd",
    [poll(DYING), poll(gap=8 * GIB), poll(OURS, gap=-4 * GIB)],
    ids=["listed but gone", "memory of nobody", "more listed than in use"],
)
def test_a_reading_that_disagrees_freezes_the_verdict(odd: Poll) -> None:
    for before in (Verdict(), after(*[poll(BOB)] * 2)):
        verdict = judge(judge(before, odd), odd)
        assert (verdict.outsiders, verdict.unseen_bytes) == (before.outsiders, 0)
        assert not verdict.is_settled


def test_after_a_freeze_two_clean_polls_are_needed_anew() -> None:
    verdict = after(*[poll(BOB)] * 2, poll(DYING), poll())
    assert verdict.outsiders == (BOB,)
    assert judge(verdict, poll()).outsiders == ()


def test_what_disagrees_in_the_same_way_for_half_a_minute_is_somebody_unseen() -> None:
    odd = poll(gap=8 * GIB)
    assert after(*[odd] * (ODD_POLLS - 1)).unseen_bytes == 0
    verdict = after(*[odd] * ODD_POLLS)
    assert (verdict.is_settled, verdict.unseen_bytes) == (True, 8 * GIB)


def test_memory_that_shrinks_meanwhile_starts_the_count_anew() -> None:
    polls = [poll(gap=(20 - 2 * n) * GIB) for n in range(ODD_POLLS)]
    assert not after(*polls).is_settled


def test_a_process_that_cannot_be_seen_for_half_a_minute_is_an_outsider() -> None:
    assert after(*[poll(DYING)] * ODD_POLLS).outsiders == (DYING,)


def test_what_a_lane_s_server_may_hold_unseen_is_not_held_against_others() -> None:
    hidden = poll(DYING, gap=8 * GIB, has_server=True)  # as in a container of its own
    verdict = after(*[hidden] * ODD_POLLS)
    assert (verdict.outsiders, verdict.unseen_bytes) == ((), 0)


def test_somebody_unseen_before_a_server_came_stays_counted() -> None:
    before = after(*[poll(gap=3 * GIB)] * ODD_POLLS)
    verdict = before
    for _ in range(ODD_POLLS):
        verdict = judge(verdict, poll(gap=17 * GIB, has_server=True))
    assert verdict.unseen_bytes == 3 * GIB


def test_a_driver_that_names_no_processes_accuses_nobody() -> None:
    verdict = after(Poll(20 * GIB, TOTAL, None, has_server=False))
    assert (verdict.outsiders, verdict.unseen_bytes, verdict.is_settled) == ((), 0, True)


def test_processes_whose_memory_is_not_told_are_still_outsiders() -> None:
    unknown = replace(BOB, memory_bytes=None)
    seen = Poll(11 * GIB, TOTAL, (unknown,), has_server=False)
    assert after(seen, seen).outsiders == (unknown,)


sizes = st.integers(0, 12 * GIB)
holders = st.builds(
    Holder,
    pid=st.integers(1, 4),
    ticks=st.integers(0, 2),
    memory_bytes=sizes | st.none(),
    lane=st.sampled_from(["", "", "big"]),
)
polls = st.builds(
    Poll,
    used_bytes=sizes | st.none(),
    total_bytes=st.just(TOTAL),
    holders=st.lists(holders, max_size=4, unique_by=lambda h: h.pid).map(tuple) | st.none(),
    has_server=st.booleans(),
)


@given(st.lists(polls, max_size=12), polls)
def test_one_poll_accuses_nobody_who_was_not_named_by_the_one_before(
    earlier: list[Poll], last: Poll
) -> None:
    before = after(*earlier)
    named = (
        {(holder.pid, holder.ticks) for holder in (earlier[-1].holders or ())} if earlier else set()
    )
    for holder in judge(before, last).outsiders:
        assert holder in before.outsiders or (holder.pid, holder.ticks) in named


@given(st.lists(polls, max_size=12))
def test_no_lane_s_process_is_ever_accused_and_amounts_are_never_negative(seen: list[Poll]) -> None:
    verdict = after(*seen)
    assert all(holder.is_outside for holder in verdict.outsiders)
    assert verdict.unseen_bytes >= 0
    assert verdict.clean <= CLEAN_POLLS
    assert verdict.odd <= ODD_POLLS


@given(st.lists(polls, max_size=8), st.lists(holders, max_size=4, unique_by=lambda h: h.pid))
def test_readings_that_stay_the_same_settle(earlier: list[Poll], on_card: list[Holder]) -> None:
    same = poll(*on_card, gap=FREE_BYTES // 2)
    verdict = after(*earlier, *[same] * ODD_POLLS)
    assert verdict.is_settled
    visible = {holder.pid for holder in on_card if holder.is_outside and holder.ticks}
    assert visible <= {holder.pid for holder in verdict.outsiders}
