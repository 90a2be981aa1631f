"""Sharing a booking: who may use its slot beside its owner."""

from functools import partial

from django.contrib.auth.models import User

from bookings.models import Booking, BookingShare
from bookings.settling import (
    Answer,
    Held,
    change,
    hold,
    note_change,
    over_objection,
    settle,
    tell_words,
    what_and_when,
)
from bookings.transfers import IS_OWNER, NO_MEMBER
from lanes.notices import News, tell_people
from lanes.refusals import Refusal
from wire.words import marked, said

MOST = 20  # members beside the owner
TOO_MANY = Refusal("too_many", said("A booking is shared with at most {most} members.", most=MOST))
EXISTS = Refusal("exists", said("This booking is shared with them already."))
NOT_SHARED = Refusal("not_found", said("This booking is not shared with them."))
SHARED = marked("{actor} shared the booking with {member}: {what}, {start} to {end}")
UNSHARED = marked("{actor} ended the sharing with {member}: {what}, {start} to {end}")
LEFT = marked("{actor} left the shared booking: {what}, {start} to {end}")
FOR_YOU = marked("{actor} shares a booking with you: {what} on {lane}, {start} to {end}")


def share(booking: Booking, *, actor: User, member: User) -> Answer:
    """Let another member use the slot beside its owner, until that is ended or the slot is.

    Refusals: unknown_member, is_owner, exists, too_many, not_yours, wrong_state, too_late, busy.
    """
    return change(booking, actor, partial(_share, member.pk))


def end_share(booking: Booking, *, actor: User, member: User) -> Answer:
    """Take that back; members may leave by themselves.

    Refusals: not_found, not_yours, wrong_state, too_late, busy.
    """
    if actor.pk != member.pk:
        return change(booking, actor, partial(_end, member))

    def under_lock() -> Answer:
        held = hold(booking, actor)
        if isinstance(held, Refusal):
            return held
        return over_objection(held) or _end(member, held)

    return settle(under_lock)


def _share(member_pk: int, held: Held) -> Answer:
    booking, now = held.booking, held.now
    member = User.objects.filter(pk=member_pk, is_active=True).first()
    if member is None:
        return NO_MEMBER
    if member == booking.owner:
        return IS_OWNER
    others = set(booking.shares.values_list("member_id", flat=True))
    if member.pk in others:
        return EXISTS
    if len(others) >= MOST:
        return TOO_MANY
    made = BookingShare.objects.create(booking=booking, member=member, added_at=now)
    what = tell_words(booking, "shared", SHARED, now, held.actor, member=member.username)
    note_change(held, "shared", what)
    _tell_member(made, held)
    return booking


def _end(member: User, held: Held) -> Answer:
    booking, actor = held.booking, held.actor
    if not booking.shares.filter(member=member).delete()[0]:
        return NOT_SHARED
    words = LEFT if member == actor else UNSHARED
    what = tell_words(booking, "unshared", words, held.now, actor, member=member.username)
    if member != actor:
        note_change(held, "unshared", what)
    return booking


def _tell_member(share_row: BookingShare, held: Held) -> None:
    booking, now = held.booking, held.now
    people = {"actor": held.actor.username, "lane": booking.lane.name}
    facts = {**people, **what_and_when(booking, now)}
    news = News(
        f"shared:{share_row.pk}",
        "shared",
        said(FOR_YOU, **facts),
        lane=booking.lane,
        booking=booking.pk,
    )
    tell_people([share_row.member], news, now)
