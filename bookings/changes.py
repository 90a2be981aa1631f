"""Changing when, where and what of a booking that is not over.

In progress, only its end and its preset can change. What only gives some of a booking back is
always fine; whatever else is judged by the rules that hold for its owner, whoever acts. Where they
want approval, a member's change asks for it again, which a booking in progress or an extension
cannot wait for: those are refused.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.contrib.auth.models import User

from bookings.availability import objection, obstacle
from bookings.lateness import left_behind
from bookings.models import Booking
from bookings.policies import Standing, standing_of
from bookings.policy import Claim, Counted
from bookings.rules import (
    NAIVE,
    Wish,
    in_utc,
    is_naive,
    kind_objection,
    lane_objection,
    preset_objection,
    time_objection,
)
from bookings.settling import Answer, Held, change, confirm_or_ask, place, tell, tell_change
from bookings.states import Kind, State, Status
from lanes.models import Lane, Preset
from lanes.refusals import Refusal
from wire.words import said

IN_PROGRESS = Refusal(
    "wrong_state",
    said(
        "This booking is in progress: only its end and its preset can change. "
        "Release it and book anew for another start or lane."
    ),
)
NEEDS_APPROVAL = Refusal(
    "needs_approval",
    said(
        "This lane needs an administrator's approval: book the extra time as a booking of its own."
    ),
)
HELD_FIRST = Refusal("wrong_state", said("This time is held for you: take it first."))
ASKS_AGAIN = Refusal(
    "asks_again",
    said(
        "This booking is confirmed as it is. Changed so, it waits for an administrator's "
        "approval, also when it is changed back."
    ),
)
CHANGED = Refusal(
    "changed", said("Somebody changed this booking meanwhile: look at it again, then decide.")
)
NOT_LATER = Refusal(
    "not_later",
    said("An extension must end later than the booking: move or release it to shorten it."),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """When and where a booking was when somebody decided to move it."""

    start: datetime
    end: datetime
    lane_id: int

    @classmethod
    def of(cls, booking: Booking) -> "Seen":
        """Where it is, as it was read."""
        return cls(booking.start, booking.end, booking.lane_id)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a move asks for; None: as it is."""

    start: datetime | None
    end: datetime
    lane: Lane | None = None
    kind: str | None = None
    preset: Preset | None = None
    seen: Seen | None = None
    is_sure: bool = True


def move(  # noqa: PLR0913 - what is wished, all by name
    booking: Booking,
    *,
    actor: User,
    start: datetime,
    end: datetime,
    lane: Lane | None = None,
    kind: str | None = None,
    preset: Preset | None = None,
    seen: Seen | None = None,
    is_sure: bool = True,
) -> Answer:
    """Give a booking other times, another lane, kind or preset; what is None stays as it is.

    Refusals: those of `book`, not_yours, wrong_state, too_late, needs_approval; changed, when it
    is not as it was `seen` any more; asks_again, when a confirmed one would have to be approved,
    for who is not sure.
    """
    if is_naive(start, end):
        return NAIVE
    asked = Asked(in_utc(start), in_utc(end), lane, kind, preset, seen, is_sure)
    return change(booking, actor, partial(moved, asked), to_lane=lane)


def extend(booking: Booking, *, actor: User, end: datetime) -> Answer:
    """Give a booking a later end.

    Refusals: naive_time, not_later, too_far, rules_broken (RulesBroken), slot_taken (SlotTaken),
    not_yours, wrong_state, too_late, lane_disabled, needs_approval, busy.
    """
    if is_naive(end):
        return NAIVE
    return change(booking, actor, partial(_extend, in_utc(end)))


def _extend(end: datetime, held: Held) -> Answer:
    if held.booking.state == State.HELD:
        return HELD_FIRST
    if end <= held.booking.end:
        return NOT_LATER
    wish = _wish(Asked(None, end), held)
    standing = _standing(wish, held)
    if _must_ask(wish, held, standing):
        return NEEDS_APPROVAL
    return _apply(wish, held, standing, "extended")


def moved(asked: Asked, held: Held) -> Answer:
    """Move a booking under lock."""
    booking, wish = held.booking, _wish(asked, held)
    if booking.state == State.HELD:
        return HELD_FIRST
    if asked.seen not in {None, Seen.of(booking)}:
        return CHANGED
    standing = _standing(wish, held)
    if booking.status(held.now) is Status.IN_PROGRESS:
        if not wish.is_start_kept or wish.lane.pk != booking.lane_id:
            return IN_PROGRESS
        if _must_ask(wish, held, standing):
            return NEEDS_APPROVAL
    return _apply(wish, held, standing, "moved", is_sure=asked.is_sure)


def _standing(wish: Wish, held: Held) -> Standing:
    return standing_of(held.booking.owner, wish.lane, held.now, but=held.booking.pk)


def _wish(asked: Asked, held: Held) -> Wish:
    """What is asked for, completed with what is."""
    booking = held.booking
    kind = asked.kind or booking.kind
    is_kept = asked.preset is None and kind == Kind.MODEL
    return Wish(
        lane=held.lanes[asked.lane.pk if asked.lane else booking.lane_id],
        kind=kind,
        preset=booking.preset if is_kept else asked.preset,
        start=asked.start or booking.start,
        end=asked.end,
        is_start_kept=asked.start in {None, booking.start},
    )


def _apply(
    wish: Wish, held: Held, standing: Standing, verb: str, *, is_sure: bool = True
) -> Answer:
    """Check, then write, then say so on the lane it is on now and on the one it left."""
    booking, now, left = held.booking, held.now, held.booking.lane
    refusal = (
        time_objection(wish, now)
        or kind_objection(wish)
        or _claim_objection(wish, booking, standing)
    )
    if refusal:
        return refusal
    claim = _claim(wish, booking)
    if not is_sure and _must_ask(wish, held, standing):
        return obstacle(standing, claim, but=booking.pk) or ASKS_AGAIN
    lapsed = left_behind(held, wish.lane.pk, wish.start, wish.end)
    _decide(booking, wish, held, standing)
    _write(booking, wish)
    refusal = place(booking, standing, claim)
    if refusal:
        return refusal
    Booking.objects.bulk_create(lapsed)
    tell_change(held, verb)
    if left.pk != booking.lane_id:
        tell(booking, verb, held.actor, now, left=left)
    return booking


def _claim_objection(wish: Wish, booking: Booking, standing: Standing) -> Refusal | None:
    """What a new claim needs; giving some of a booking back needs nothing."""
    if _is_narrower(wish, booking):
        return None
    is_fit = wish.lane.pk == booking.lane_id and _has_preset_of(wish, booking)
    return (
        lane_objection(wish.lane)
        or (None if is_fit else preset_objection(wish))
        or objection(standing, _claim(wish, booking), but=booking.pk)
    )


def _claim(wish: Wish, booking: Booking) -> Claim:
    """What is wished, and the booking as it is until then."""
    return Claim(
        lane=wish.lane.pk,
        start=wish.start,
        end=wish.end,
        preset=wish.preset.pk if wish.preset else None,
        before=Counted(booking.lane_id, booking.start, booking.end),
    )


def _must_ask(wish: Wish, held: Held, standing: Standing) -> bool:
    """Whether a confirmed booking would have to wait for an administrator again."""
    return (
        held.booking.state == State.CONFIRMED
        and not held.actor.is_staff
        and not _is_narrower(wish, held.booking)
        and standing.judge.needs_approval(_claim(wish, held.booking))
    )


def _is_narrower(wish: Wish, booking: Booking) -> bool:
    """Whether it claims nothing that the booking does not hold."""
    return (
        wish.lane.pk == booking.lane_id
        and _has_preset_of(wish, booking)
        and booking.start <= wish.start
        and wish.end <= booking.end
    )


def _has_preset_of(wish: Wish, booking: Booking) -> bool:
    return (wish.preset.pk if wish.preset else None) == booking.preset_id


def _decide(booking: Booking, wish: Wish, held: Held, standing: Standing) -> None:
    """Pending again where approval is needed, confirmed where a pending one needs none."""
    if _must_ask(wish, held, standing):
        booking.decided_by = None
        confirm_or_ask(booking, held.now, is_asked=True)
    elif booking.state == State.PENDING and not standing.judge.needs_approval(
        _claim(wish, booking)
    ):
        confirm_or_ask(booking, held.now, is_asked=False)


def _write(booking: Booking, wish: Wish) -> None:
    is_commitment_kept = (
        wish.lane.pk == booking.lane_id
        and _has_preset_of(wish, booking)
        and wish.start == booking.start
    )
    if not is_commitment_kept:
        booking.pinned_revision = None
    booking.lane, booking.kind, booking.preset = wish.lane, wish.kind, wish.preset
    booking.start, booking.end, booking.original_end = wish.start, wish.end, wish.end
