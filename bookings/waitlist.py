"""Waiting for time on lanes that are taken: joining, leaving, and confirming what was held."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.contrib.auth.models import User

from bookings.models import Booking, State, Waiting
from bookings.policies import claim_of, standing_of
from bookings.policy_words import length_words
from bookings.rules import (
    NAIVE,
    Wish,
    in_utc,
    is_naive,
    kind_objection,
    lane_objection,
    owner_objection,
    preset_objection,
    purpose_objection,
    time_objection,
)
from bookings.settling import Answer, Held, change, confirm_or_ask, lock, settle, tell
from lanes import clock
from lanes.models import Lane, Preset
from lanes.refusals import Refusal
from wire.words import said

MOST = 20  # that one member waits for at once
NO_LANE = Refusal("unknown_lane", said("Say which lanes you would take."))
BAD_LENGTH = Refusal("bad_length", said("The window must be at least as long as the slot."))
TOO_MANY = Refusal("too_many", said("You wait for {most} slots already: leave one.", most=MOST))
NOT_WAITING = Refusal("wrong_state", said("This waits no more: look again."))
NOT_YOURS = Refusal("not_yours", said("Somebody else waits for this."))
NOT_HELD = Refusal("wrong_state", said("This booking is no hold: there is nothing to take."))
HOLD_OVER = Refusal("too_late", said("The time was held too long ago: others may have it now."))


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody waits for: so many minutes somewhere in [opens, closes) on one of the lanes."""

    lanes: Collection[Lane]
    kind: str
    preset: Preset | None
    minutes: int
    opens: datetime
    closes: datetime
    purpose: str = ""


def wait(*, owner: User, wanted: Wanted) -> Waiting | Refusal:
    """Have a member wait, behind all who do already.

    Refusals: unknown_lane, bad_length, too_many; naive_time, in_the_past, too_far, wrong_kind,
    unknown_preset, lane_disabled, bad_purpose, owner_inactive as of `services.book`; busy.
    """
    if is_naive(wanted.opens, wanted.closes):
        return NAIVE
    refusal = purpose_objection(wanted.purpose)
    if refusal:
        return refusal
    return settle(partial(_wait, owner, wanted))


@dataclass(frozen=True, slots=True)
class Place:
    """Something that a member waits for, and how many are served before it on each lane."""

    waiting: Waiting
    number: int  # 1: the next who fits

    @property
    def length(self) -> str:
        """For how long, in words."""
        return length_words(self.waiting.minutes)


def places(now: datetime) -> list[Place]:
    """All who wait, in order, each with the place among those who wait for one of its lanes; who is
    before it but does not fit is passed over. Two queries."""
    rows = Waiting.objects.unserved(now).select_related("preset").prefetch_related("lanes")
    found, before = list[Place](), Counter[frozenset[int]]()  # thousands wait for few sets of lanes
    for each in rows:
        lanes = frozenset(lane.pk for lane in each.lanes.all())
        number = 1 + sum(count for others, count in before.items() if not lanes.isdisjoint(others))
        found.append(Place(each, number))
        before[lanes] += 1
    return found


def places_of(owner: User, now: datetime) -> list[Place]:
    """What a member waits for, in order."""
    return [each for each in places(now) if each.waiting.owner_id == owner.pk]


def leave(waiting: Waiting, *, actor: User) -> Waiting | Refusal:
    """Wait no more. Refusals: not_yours, wrong_state."""
    if not (actor.is_staff or actor.pk == waiting.owner_id):
        return NOT_YOURS
    now = clock.database_now()
    if not Waiting.objects.filter(pk=waiting.pk).unserved(now).update(left_at=now):
        return NOT_WAITING
    waiting.left_at = now
    return waiting


def leave_all(owner: User) -> None:
    """Have a member who is removed wait for nothing any more."""
    now = clock.database_now()
    Waiting.objects.filter(owner=owner, hold=None, left_at=None).update(left_at=now)


def confirm(booking: Booking, *, actor: User) -> Answer:
    """Make a booking of a hold: pending where rules want approval.

    Refusals: wrong_state (no hold), too_late, lane_disabled, not_yours, busy.
    """
    return change(booking, actor, _confirm)


def _wait(owner: User, wanted: Wanted) -> Waiting | Refusal:
    lock(owner.pk, ())
    now = clock.database_now()
    refusal = owner_objection(owner.pk) or _objection(owner, wanted, now)
    if refusal:
        return refusal
    made = Waiting.objects.create(
        owner=owner,
        kind=wanted.kind,
        preset=wanted.preset,
        minutes=wanted.minutes,
        opens=max(in_utc(wanted.opens), now),
        closes=in_utc(wanted.closes),
        purpose=wanted.purpose.strip(),
        created_at=now,
    )
    made.lanes.set(wanted.lanes)
    return made


def _objection(owner: User, wanted: Wanted, now: datetime) -> Refusal | None:
    if not wanted.lanes:
        return NO_LANE
    opens, closes = max(in_utc(wanted.opens), now), in_utc(wanted.closes)
    for lane in wanted.lanes:
        wish = Wish(lane, wanted.kind, wanted.preset, opens, closes)
        refusal = (
            time_objection(wish, now)
            or kind_objection(wish)
            or lane_objection(lane)
            or preset_objection(wish)
        )
        if refusal:
            return refusal
    if not 0 < wanted.minutes <= (closes - opens) / timedelta(minutes=1):
        return BAD_LENGTH
    is_full = Waiting.objects.filter(owner=owner).unserved(now).count() >= MOST
    return TOO_MANY if is_full else None


def _confirm(held: Held) -> Answer:
    booking, now = held.booking, held.now
    if booking.state != State.HELD:
        return NOT_HELD
    if booking.held_until is None or booking.held_until <= now:
        return HOLD_OVER
    refusal = lane_objection(booking.lane)
    if refusal:
        return refusal
    owner = booking.owner
    judge = standing_of(owner, booking.lane, now, but=booking.pk).judge
    is_asked = not owner.is_staff and judge.needs_approval(claim_of(booking, now))
    confirm_or_ask(booking, now, is_asked=is_asked)
    booking.save(update_fields=["state", "confirmed_at", "asked_at"])
    tell(booking, "created", held.actor, now)
    return booking
