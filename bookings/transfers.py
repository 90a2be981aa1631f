"""Giving a booking that is not over to another member, who has it as if it were booked so."""

from datetime import datetime
from functools import partial

from django.contrib.auth.models import User

from bookings.changes import HELD_FIRST
from bookings.models import Booking
from bookings.policies import Standing, claim_of, standing_of
from bookings.policy import Claim
from bookings.policy_words import told
from bookings.refusals import RulesBroken
from bookings.settling import Answer, Held, change, note_change, tell_words, what_and_when
from bookings.states import State
from lanes.notices import News, tell_people
from lanes.refusals import Refusal
from wire.words import marked, said

NO_MEMBER = Refusal("unknown_member", said("There is no such member who may log in."))
IS_OWNER = Refusal("is_owner", said("This booking is theirs already."))
NEEDS_APPROVAL = Refusal(
    "needs_approval",
    said("This lane needs an administrator's approval for them: ask one to transfer the booking."),
)
GAVE_OWN = marked("{actor} gave the booking to {member}: {what}, {start} to {end}")
GAVE = marked("{actor} gave the booking of {owner} to {member}: {what}, {start} to {end}")
NOW_YOURS = marked("{actor} transferred a booking to you: {what} on {lane}, {start} to {end}")
NOT_YOURS_NOW = marked(
    "Your booking was transferred to {member}: {what} on {lane}, {start} to {end}"
)


def transfer(booking: Booking, *, actor: User, to: User) -> Answer:
    """Give a booking to another member, from now on.

    Times, preset, commitment and pin stay, and so does the wait of a pending one. It leaves its
    series, and with whom it is shared is its new owner's to say. The new owner's rules judge it as
    it is but for its start, which they did not choose. Refusals: unknown_member, is_owner,
    rules_broken (RulesBroken), needs_approval, not_yours, wrong_state, too_late, busy.
    """
    return change(booking, actor, partial(_transfer, to.pk), to_owner=to)


def _transfer(to_pk: int, held: Held) -> Answer:
    booking, giver = held.booking, held.booking.owner
    to = User.objects.filter(pk=to_pk, is_active=True).first()
    if to is None:
        return NO_MEMBER
    refusal = IS_OWNER if to == giver else _objection(held, to)
    if refusal:
        return refusal
    booking.owner, booking.owner_since, booking.series = to, held.now, None
    booking.first_request_at = None  # whether its new owner comes is to be seen
    booking.save(update_fields=["owner", "owner_since", "series", "first_request_at"])
    booking.shares.all().delete()
    _tell(held, giver)
    return booking


def _objection(held: Held, to: User) -> Refusal | None:
    """What the rules of the new owner have against it."""
    booking, now = held.booking, held.now
    if booking.state == State.HELD:
        return HELD_FIRST
    standing = standing_of(to, booking.lane, now, but=booking.pk)
    claim = claim_of(booking, now, is_kept=True)
    is_asked = booking.state == State.CONFIRMED and not held.actor.is_staff
    if is_asked and standing.judge.needs_approval(claim):
        return NEEDS_APPROVAL
    return _broken(standing, claim)


def _broken(standing: Standing, claim: Claim) -> RulesBroken | None:
    rules = tuple(told(each, standing, claim) for each in standing.judge.broken(claim))
    if not rules:
        return None
    why, member = " ".join(rule.words for rule in rules), standing.owner.username
    words = said("{member} cannot have it: {why}", member=member, why=why)
    return RulesBroken("rules_broken", words, broken=rules)


def _tell(held: Held, giver: User) -> None:
    """The lane's history, the new owner and the old one."""
    booking, actor, now = held.booking, held.actor, held.now
    member = booking.owner.username
    if actor == giver:
        tell_words(booking, "transferred", GAVE_OWN, now, actor, member=member)
    else:
        owner = giver.username
        what = tell_words(booking, "transferred", GAVE, now, actor, owner=owner, member=member)
        note_change(held, "transferred", what)
    _tell_person(booking.owner, NOW_YOURS, held)
    _tell_person(giver, NOT_YOURS_NOW, held)


def _tell_person(person: User, words: str, held: Held) -> None:
    """Whoever did it need not be told of it, but finds it in the list."""
    booking, now = held.booking, held.now
    people = {"actor": held.actor.username, "member": booking.owner.username}
    facts = {**people, "lane": booking.lane.name, **what_and_when(booking, now)}
    news = News(
        _about(booking, now),
        "transferred",
        said(words, **facts),
        lane=booking.lane,
        booking=booking.pk,
        is_quiet=person == held.actor,
    )
    tell_people([person], news, now)


def _about(booking: Booking, now: datetime) -> str:
    return f"transferred:{booking.pk}:{now:%Y%m%dT%H%M%S%f}"
