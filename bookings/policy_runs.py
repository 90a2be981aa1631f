"""Slots of one member on one lane that touch count as one, so that nobody gets round a longest slot
by booking it in pieces. Pure."""

from collections.abc import Iterable, Iterator
from datetime import timedelta

from bookings.policy_terms import Claim, Counted

BREAK = timedelta(minutes=15)  # less than this between two slots is no break between them


def minutes_beside(claim: Claim, held: Iterable[Counted]) -> float:
    """How long the member's slots are that touch this claim, or touch one that does.

    `held`: those on its lane, over or to come; what overlaps the claim is in its way, not beside
    it. A claim that stays within the time it had on this lane has none beside it: nothing is new.
    """
    before = claim.before
    if before is not None and before.lane == claim.lane and _is_within(claim, before):
        return 0.0
    found = [*_after(claim, held), *_before(claim, held)]
    return sum((each.end - each.start) / timedelta(minutes=1) for each in found)


def _is_within(claim: Claim, before: Counted) -> bool:
    return before.start <= claim.start and claim.end <= before.end


def _after(claim: Claim, held: Iterable[Counted]) -> Iterator[Counted]:
    ends = claim.end
    for each in sorted(held, key=lambda one: one.start):
        if each.start < claim.end:
            continue
        if each.start - ends >= BREAK:
            return
        ends = each.end
        yield each


def _before(claim: Claim, held: Iterable[Counted]) -> Iterator[Counted]:
    begins = claim.start
    for each in sorted(held, key=lambda one: one.end, reverse=True):
        if each.end > claim.start:
            continue
        if begins - each.end >= BREAK:
            return
        begins = each.start
        yield each
