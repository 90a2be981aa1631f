"""The one service that books, moves, extends, approves, restores, shares and gives back or away.

Pages, REST, admin and commands call these and nothing else. Each answers the booking as it is
then, or a refusal; nothing was written when it refuses.
"""

from datetime import datetime
from functools import partial

from django.contrib.auth.models import User

from bookings.availability import objection
from bookings.changes import extend, move
from bookings.drafting import draft
from bookings.endings import approve, cancel, reject, release, restore
from bookings.policies import claim_of, standing_of
from bookings.rules import (
    NAIVE,
    Wish,
    in_utc,
    is_naive,
    kind_objection,
    lane_objection,
    preset_objection,
    purpose_objection,
    time_objection,
)
from bookings.settling import GONE, Answer, lock, place, settle, tell
from bookings.sharing import end_share, share
from bookings.transfers import transfer
from lanes import clock
from lanes.models import Lane, Preset

__all__ = [
    "approve",
    "book",
    "cancel",
    "end_share",
    "extend",
    "move",
    "reject",
    "release",
    "restore",
    "share",
    "transfer",
]


def book(  # noqa: PLR0913 - what is wished, all by name
    *,
    owner: User,
    lane: Lane,
    kind: str,
    preset: Preset | None,
    start: datetime | None,
    end: datetime,
    purpose: str = "",
) -> Answer:
    """Book [start, end) for a member; without a start, from now.

    Pending where rules want approval and the owner is no administrator. Refusals: naive_time,
    ends_before_start, in_the_past, too_far, wrong_kind, unknown_preset, bad_purpose,
    owner_inactive, lane_disabled, rules_broken (RulesBroken), slot_taken (SlotTaken), busy,
    wrong_state (lane deleted meanwhile).
    """
    if is_naive(start, end):
        return NAIVE
    refusal = purpose_objection(purpose)
    if refusal:
        return refusal
    return settle(partial(_book, owner, lane.pk, (kind, preset, start, end), purpose))


def _book(
    owner: User,
    lane_pk: int,
    asked: tuple[str, Preset | None, datetime | None, datetime],
    purpose: str,
) -> Answer:
    """Lock, then check, then write."""
    lane = lock(owner.pk, {lane_pk}).get(lane_pk)
    now = clock.database_now()
    if lane is None:
        return GONE
    kind, preset, start, end = asked
    wish = Wish(lane, kind, preset, in_utc(start) if start else now, in_utc(end))
    refusal = (
        time_objection(wish, now)
        or kind_objection(wish)
        or lane_objection(lane)
        or preset_objection(wish)
    )
    if refusal:
        return refusal
    standing = standing_of(owner, lane, now)
    booking = draft(standing, wish, purpose)
    claim = claim_of(booking, now)
    refusal = objection(standing, claim) or place(booking, standing, claim)
    if refusal:
        return refusal
    tell(booking, "created", owner, now)
    return booking
