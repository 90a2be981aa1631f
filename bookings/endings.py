"""Giving a booking back, approving or rejecting it, and restoring one that was given up."""

from collections.abc import Callable
from functools import partial

from django.contrib.auth.models import User

from bookings.availability import objection
from bookings.lateness import is_given_up_late
from bookings.models import Booking
from bookings.policies import claim_of, standing_of
from bookings.rules import Wish, lane_objection, preset_objection
from bookings.settling import (
    NOT_YOURS,
    TOO_LATE,
    Answer,
    Held,
    change,
    confirm_or_ask,
    hold,
    place,
    settle,
    tell_change,
)
from bookings.states import LONGEST_COMMENT, Lapse, State, Status
from lanes.refusals import NOT_ADMINISTRATOR, Refusal
from wire.words import said

RELEASE_INSTEAD = Refusal("wrong_state", said("This booking is in progress: release it instead."))
NOT_PENDING = Refusal("wrong_state", said("This booking does not wait for approval."))
BAD_COMMENT = Refusal(
    "bad_comment", said("Say what you want to in at most {most} characters.", most=LONGEST_COMMENT)
)
NOT_GIVEN_UP = Refusal("wrong_state", said("This booking was neither cancelled nor rejected."))


def release(booking: Booking, *, actor: User) -> Answer:
    """End a booking in progress now, keeping its original end; cancel one that has not begun.

    Refusals: not_yours, wrong_state, too_late, busy.
    """
    return change(booking, actor, give_back)


def cancel(booking: Booking, *, actor: User) -> Answer:
    """Cancel a booking that has not begun or still waits for approval.

    Refusals: wrong_state (in progress: release it instead), not_yours, too_late, busy.
    """
    return change(booking, actor, _cancel)


def approve(booking: Booking, *, actor: User, comment: str = "") -> Answer:
    """Confirm a pending booking; begun already, it is in progress from now. Its owner is told the
    comment.

    Refusals: bad_comment, not_administrator, wrong_state, too_late, lane_disabled, busy.
    """
    return _decided(booking, actor, _approve, comment.strip())


def reject(booking: Booking, *, actor: User, comment: str = "") -> Answer:
    """Turn a pending booking down; its time is free. Refusals: those of `approve`."""
    return _decided(booking, actor, _reject, comment.strip())


def restore(booking: Booking, *, actor: User) -> Answer:
    """Bring back what is left of a cancelled booking, or, for administrators, of a rejected one.

    The rules judge it as a new claim but for its times, which nobody chose. Refusals: not_yours,
    not_administrator, wrong_state, too_late, lane_disabled, unknown_preset, rules_broken
    (RulesBroken), slot_taken (SlotTaken), busy.
    """

    def under_lock() -> Answer:
        held = hold(booking, actor)
        if isinstance(held, Refusal):
            return held
        return _restore_objection(held) or _restore(held)

    return settle(under_lock)


def _decided(
    booking: Booking, actor: User, decide: Callable[[str, Held], Answer], comment: str
) -> Answer:
    if len(comment) > LONGEST_COMMENT or "\0" in comment:
        return BAD_COMMENT
    return change(booking, actor, partial(decide, comment), is_for_staff=True)


def give_back(held: Held) -> Answer:
    """Release a booking under lock, or cancel it where it has not begun."""
    booking, now = held.booking, held.now
    # Not even begun at this very moment: an interval of no length is none.
    if booking.status(now) is not Status.IN_PROGRESS or now == booking.start:
        return give_up(held, State.CANCELLED)
    booking.end = booking.released_at = now
    booking.save(update_fields=["end", "released_at"])
    tell_change(held, "released")
    return booking


def _cancel(held: Held) -> Answer:
    if held.booking.status(held.now) is Status.IN_PROGRESS:
        return RELEASE_INSTEAD
    return give_up(held, State.CANCELLED)


def _approve(comment: str, held: Held) -> Answer:
    booking, now = held.booking, held.now
    refusal = NOT_PENDING if booking.state != State.PENDING else lane_objection(booking.lane)
    if refusal:
        return refusal
    booking.state, booking.confirmed_at, booking.decided_by = State.CONFIRMED, now, held.actor
    booking.decision_comment = comment
    booking.save(update_fields=["state", "confirmed_at", "decided_by", "decision_comment"])
    tell_change(held, "approved")
    return booking


def _reject(comment: str, held: Held) -> Answer:
    if held.booking.state != State.PENDING:
        return NOT_PENDING
    held.booking.decided_by, held.booking.decision_comment = held.actor, comment
    return give_up(held, State.REJECTED)


def give_up(held: Held, state: State) -> Answer:
    """Cancel or reject a booking under lock; what is cancelled late counts as used."""
    if state is State.CANCELLED and is_given_up_late(held):
        held.booking.lapse = Lapse.LATE_CANCEL
    held.booking.state = state
    held.booking.save(update_fields=["state", "decided_by", "decision_comment", "lapse"])
    tell_change(held, state.value)
    return held.booking


def _restore_objection(held: Held) -> Refusal | None:
    booking, actor = held.booking, held.actor
    if not booking.is_changeable_by(actor):
        return NOT_YOURS
    if booking.state not in {State.CANCELLED, State.REJECTED}:
        return NOT_GIVEN_UP
    if booking.state == State.REJECTED and not actor.is_staff:
        return NOT_ADMINISTRATOR
    return TOO_LATE if held.now >= booking.end else None


def _restore(held: Held) -> Answer:
    """Like booking anew what is left: others may have used the time until now."""
    booking, now, lane = held.booking, held.now, held.booking.lane
    booking.start = max(booking.start, now)
    wish = Wish(lane, booking.kind, booking.preset, booking.start, booking.end)
    refusal = lane_objection(lane) or preset_objection(wish)
    if refusal:
        return refusal
    standing = standing_of(booking.owner, lane, now, but=booking.pk)
    claim = claim_of(booking, now, is_kept=True)
    refusal = objection(standing, claim, but=booking.pk)
    if refusal:
        return refusal
    is_asked = not held.actor.is_staff and standing.judge.needs_approval(claim)
    confirm_or_ask(booking, now, is_asked=is_asked)
    booking.lapse = ""
    refusal = place(booking, standing, claim)
    if refusal:
        return refusal
    tell_change(held, "restored")
    return booking
