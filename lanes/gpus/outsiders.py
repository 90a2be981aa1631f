"""Who holds a card's memory without being a lane's. Pure.

One reading proves nothing: while a process dies the driver lists it though it is gone, or counts
its memory though nobody is listed. So a verdict changes only after two clean polls in a row that
name the same processes; whatever disagrees with itself freezes it. What keeps disagreeing in the
same way for half a minute is no dying process: it is somebody who cannot be seen from here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lanes.gpus.readings import Holder

CLEAN_POLLS = 2
ODD_POLLS = 6  # in the same way: at a poll each five seconds, half a minute
FREE_BYTES = 512 * 2**20  # what drivers and desktops hold of an idle card
Identity = tuple[int, int]  # pid and start


@dataclass(frozen=True, slots=True)
class Verdict:
    """What holds of one card, and what the last polls were like."""

    outsiders: tuple[Holder, ...] = ()
    unseen_bytes: int = 0  # held by nobody who can be seen
    clean: int = 0  # clean polls in a row that named the same processes
    odd: int = 0  # polls in a row that disagreed with themselves in the same way
    named: frozenset[Identity] = field(default_factory=frozenset)  # processes of the last poll
    gap_bytes: int = 0  # of the last poll: in use but held by nobody named

    @property
    def is_settled(self) -> bool:
        """Whether the newest polls bear the verdict out; else it is frozen."""
        return self.clean >= CLEAN_POLLS or self.odd >= ODD_POLLS

    @property
    def outside_bytes(self) -> int:
        """All that no lane holds."""
        return sum(holder.memory_bytes or 0 for holder in self.outsiders) + self.unseen_bytes


@dataclass(frozen=True, slots=True)
class Poll:
    """One reading of one card."""

    used_bytes: int | None
    total_bytes: int
    holders: Sequence[Holder] | None  # None: the driver does not tell
    has_server: bool  # a lane's server runs on the card, whether or not it can be seen


def judge(before: Verdict, poll: Poll) -> Verdict:
    """The verdict after one more poll; without a list of processes nobody can be accused."""
    if poll.used_bytes is None or poll.holders is None:
        return Verdict(clean=CLEAN_POLLS)
    named = frozenset((holder.pid, holder.ticks) for holder in poll.holders)
    gap, most = _gap(poll.used_bytes, poll.holders), tolerance(poll.total_bytes)
    is_odd = any(not holder.ticks for holder in poll.holders) or abs(gap) > most
    is_same = named == before.named and abs(gap - before.gap_bytes) <= most
    latest = replace(before, named=named, gap_bytes=gap)
    if is_odd:
        latest = replace(latest, clean=0, odd=_one_more(before.odd, ODD_POLLS, is_same=is_same))
    else:
        latest = replace(latest, odd=0, clean=_one_more(before.clean, CLEAN_POLLS, is_same=is_same))
    return _settled(before, latest, poll) if latest.is_settled else latest


def _settled(before: Verdict, latest: Verdict, poll: Poll) -> Verdict:
    """Who is outside by a poll that counts. What a lane's server may hold unseen is its own, but
    for what was there before it."""
    known = {(holder.pid, holder.ticks) for holder in before.outsiders}
    outside = tuple(
        holder
        for holder in poll.holders or ()
        if holder.is_outside and (holder.ticks or not poll.has_server or (holder.pid, 0) in known)
    )
    unseen = latest.gap_bytes if latest.gap_bytes > tolerance(poll.total_bytes) else 0
    if unseen and poll.has_server:
        unseen = min(unseen, before.unseen_bytes)
    return replace(latest, outsiders=outside, unseen_bytes=unseen)


def tolerance(total_bytes: int) -> int:
    """How far the sum of processes may be from what is in use: contexts are counted to nobody."""
    return FREE_BYTES + total_bytes // 100


def _gap(used_bytes: int, holders: Sequence[Holder]) -> int:
    """In use but named for nobody; 0 where the driver does not say how much each one holds."""
    if any(holder.memory_bytes is None for holder in holders):
        return 0
    return used_bytes - sum(holder.memory_bytes or 0 for holder in holders)


def _one_more(count: int, most: int, *, is_same: bool) -> int:
    return min(count + 1, most) if is_same else 1
