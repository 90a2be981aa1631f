"""How a booking is settled: one transaction, locks in one order, the database as last referee.

Locks: the member's row, and an heir's, by primary key; then lanes by primary key; then the booking.
`now` is read after them.
SQLite has one writer at a time instead (IMMEDIATE transactions).
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.contrib.auth.models import User
from django.db import IntegrityError, OperationalError, connection, transaction
from django.utils import timezone

from bookings.availability import obstacle, slot_taken
from bookings.guards import Verdict, verdict
from bookings.models import Booking
from bookings.policies import Standing
from bookings.policy import Claim
from bookings.rules import owner_objection
from bookings.states import OCCUPYING, State
from lanes import audit, clock, ticks
from lanes.events import add_event
from lanes.locking import lock_lanes
from lanes.models import Lane, Subject
from lanes.refusals import NOT_ADMINISTRATOR, Refusal
from wire.words import At, Words, marked, said

log = logging.getLogger(__name__)

BUSY = Refusal("busy", said("Another change came at the same moment: try again."))
GONE = Refusal("wrong_state", said("This no longer exists: look again."))
NOT_YOURS = Refusal("not_yours", said("This booking belongs to somebody else."))
TOO_LATE = Refusal("too_late", said("This booking is over: book anew."))
GIVEN_UP = {
    State.CANCELLED: said("This booking was cancelled already: book anew if the time is needed."),
    State.REJECTED: said("This booking was rejected already: book anew, or ask an administrator."),
    State.EXPIRED: said("This was not approved, or not taken, in time: book anew."),
}
Answer = Booking | Refusal
Done = TypeVar("Done")
# What can be done with a booking, in sentences about the actor's own and about another's.
OWN = {
    "created": marked("{actor} created the booking: {what}, {start} to {end}"),
    "moved": marked("{actor} moved the booking: {what}, {start} to {end}"),
    "extended": marked("{actor} extended the booking: {what}, {start} to {end}"),
    "released": marked("{actor} released the booking: {what}, {start} to {end}"),
    "cancelled": marked("{actor} cancelled the booking: {what}, {start} to {end}"),
    "approved": marked("{actor} approved the booking: {what}, {start} to {end}"),
    "rejected": marked("{actor} rejected the booking: {what}, {start} to {end}"),
    "restored": marked("{actor} restored the booking: {what}, {start} to {end}"),
}
OF_OTHERS = {
    "created": marked("{actor} created the booking of {owner}: {what}, {start} to {end}"),
    "moved": marked("{actor} moved the booking of {owner}: {what}, {start} to {end}"),
    "extended": marked("{actor} extended the booking of {owner}: {what}, {start} to {end}"),
    "released": marked("{actor} released the booking of {owner}: {what}, {start} to {end}"),
    "cancelled": marked("{actor} cancelled the booking of {owner}: {what}, {start} to {end}"),
    "approved": marked("{actor} approved the booking of {owner}: {what}, {start} to {end}"),
    "rejected": marked("{actor} rejected the booking of {owner}: {what}, {start} to {end}"),
    "restored": marked("{actor} restored the booking of {owner}: {what}, {start} to {end}"),
}
BY_RULE = {
    "held": marked("The lane is held for {owner}, who waited for it: {what}, {start} to {end}"),
    "hold_ended": marked(
        "{owner} did not take what was held, which is free again: {what}, {start} to {end}"
    ),
    "expired": marked(
        "The booking of {owner} expired, as nobody approved it: {what}, {start} to {end}"
    ),
    "no_show": marked(
        "The booking of {owner} is released, as nobody sent a request for {minutes} minutes: "
        "{what}, {start} to {end}"
    ),
}
BOOKED_SERIES = marked("{actor} booked a series: {what}, {count} times, {start} to {end}")
LOCK_SECONDS = 10.0  # how long to wait for another's lock on PostgreSQL; for SQLite see settings


@dataclass(frozen=True, slots=True)
class Held:
    """A booking as it is now, under lock, and who wants to change it."""

    booking: Booking
    actor: User
    lanes: dict[int, Lane]  # locked: the booking's own, and the one it may move to
    now: datetime
    was: audit.Facts | None = None  # what the audit trail tells of it, unless it is the actor's


def settle(work: Callable[[], Done | Refusal]) -> Done | Refusal:
    """Do it in a transaction; a conflict with other transactions becomes the refusal `busy`."""
    try:
        with transaction.atomic():
            _limit_waiting()
            return work()
    except (IntegrityError, OperationalError) as error:
        if verdict(error) is not Verdict.BUSY:
            raise
        log.warning("booking not settled reason=%s", error)
        return BUSY


def change(
    booking: Booking,
    actor: User,
    work: Callable[[Held], Answer],
    *,
    is_for_staff: bool = False,
    to_lane: Lane | None = None,
    to_owner: User | None = None,
) -> Answer:
    """Settle a change of a booking that is still to come or in progress."""

    def under_lock() -> Answer:
        held = hold(booking, actor, to_lane, to_owner)
        if isinstance(held, Refusal):
            return held
        return _objection(held, is_for_staff=is_for_staff) or work(held)

    return settle(under_lock)


def hold(
    booking: Booking, actor: User, to_lane: Lane | None = None, to_owner: User | None = None
) -> Held | Refusal:
    """Lock a booking with its owner and lanes, and read it anew."""
    seen = Booking.objects.filter(pk=booking.pk).values_list("owner_id", "lane_id").first()
    if seen is None:
        return GONE
    owner_pk, lane_pk = seen
    heir = [to_owner.pk] if to_owner else []
    lanes = lock(owner_pk, {lane_pk, to_lane.pk if to_lane else lane_pk}, heir=heir)
    now = clock.database_now()
    found = Booking.objects.select_for_update(no_key=True, of=("self",))
    fresh = found.select_related("lane", "owner", "preset").get(pk=booking.pk)
    if (
        fresh.owner_id,
        fresh.lane_id,
    ) != seen:  # moved or given away between the first look and the locks
        return BUSY
    if to_lane and to_lane.pk not in lanes:
        return GONE
    return held_as(fresh, actor, lanes, now)


def held_as(booking: Booking, actor: User, lanes: dict[int, Lane], now: datetime) -> Held:
    """A booking that is under lock, as it is now."""
    is_own = booking.owner_id == actor.pk
    was = None if is_own else audit.facts_of(booking, Subject.BOOKING)
    return Held(booking, actor, lanes, now, was)


def lock(
    owner_pk: int, lane_pks: Collection[int], *, heir: Collection[int] = ()
) -> dict[int, Lane]:
    """Lock the member (and the one who is to have the booking), then the lanes, each by primary
    key; the lanes that exist, as they are now."""
    members = User.objects.select_for_update(no_key=True).filter(pk__in={owner_pk, *heir})
    list(members.order_by("pk").values_list("pk"))
    return {lane.pk: lane for lane in lock_lanes(lane_pks)}


def place(booking: Booking, standing: Standing, claim: Claim) -> Refusal | None:
    """Save a booking that claims time, unless others hold some of it or its owner was removed."""
    refusal = owner_objection(booking.owner_id) or obstacle(standing, claim, but=booking.pk)
    if refusal:
        return refusal
    try:
        with transaction.atomic():  # a savepoint: what follows can still ask the database
            booking.save()
    except IntegrityError as error:
        if verdict(error) is not Verdict.OVERLAP:
            raise
        found = obstacle(standing, claim, but=booking.pk)
        return found or slot_taken(standing, claim, (), but=booking.pk)
    return None


def confirm_or_ask(booking: Booking, now: datetime, *, is_asked: bool) -> None:
    """Confirm it, or, where an administrator is asked, have it wait from now."""
    booking.state = State.PENDING if is_asked else State.CONFIRMED
    booking.confirmed_at = None if is_asked else now
    booking.decision_comment = ""
    if is_asked:
        booking.asked_at = now


def tell_change(held: Held, done: str) -> None:
    """`tell` of what was held, also the audit trail where it is another's."""
    booking, actor = held.booking, held.actor
    tell(booking, done, actor, held.now)
    note_change(held, done, _sentence(booking, done, actor, held.now))


def note_change(held: Held, done: str, what: Words) -> None:
    """The audit trail of what was done to another's booking, in a sentence."""
    if held.was is None:
        return
    booking = held.booking
    about = audit.About(Subject.BOOKING, booking.pk, f"#{booking.pk} {booking.owner.username}")
    after = audit.facts_of(booking, Subject.BOOKING)
    audit.note(f"booking.{done}", held.actor, about, before=held.was, after=after, what=what)


def tell(
    booking: Booking, done: str, actor: User, now: datetime, *, left: Lane | None = None
) -> None:
    """Write the event, and have the lanes planned when this transaction commits.

    `done` is what was done, such as moved; `left` is the lane it was on, if that is to know.
    """
    lane = left or booking.lane
    sentence = _sentence(booking, done, actor, now)
    if left:
        sentence = said("{sentence}, on {lane}", sentence=sentence, lane=booking.lane.slug)
    _tell(booking, lane, (f"booking.{done}", sentence), now, actor)


def tell_rule(booking: Booking, done: str, now: datetime, *, minutes: int = 0) -> None:
    """The same where no person did it but a rule; `done` is one of BY_RULE."""
    owner = booking.owner.username
    sentence = said(BY_RULE[done], owner=owner, minutes=minutes, **what_and_when(booking, now))
    _tell(booking, booking.lane, (f"booking.{done}", sentence), now, None)


def tell_words(
    booking: Booking, done: str, words: str, now: datetime, actor: User, **people: str
) -> Words:
    """The same in words of one's own, which may say {actor}, {what}, {start} and {end}, too."""
    facts = {**people, **what_and_when(booking, now)}
    sentence = said(words, actor=actor.username, **facts)
    _tell(booking, booking.lane, (f"booking.{done}", sentence), now, actor)
    return sentence


def tell_series(bookings: Sequence[Booking], actor: User, now: datetime) -> None:
    """The same of a series that its owner booked."""
    first, last = bookings[0], bookings[-1]
    facts = what_and_when(first, now) | {"end": what_and_when(last, now)["end"]}
    sentence = said(BOOKED_SERIES, actor=actor.username, count=len(bookings), **facts)
    _tell(first, first.lane, ("series.created", sentence), now, actor)


def _tell(
    booking: Booking, lane: Lane, event: tuple[str, str], now: datetime, actor: User | None
) -> None:
    kind, sentence = event
    add_event(lane, now, kind, sentence, actor=actor, booking=booking.pk)
    ticks.plan_soon()
    who = actor.pk if actor else "rules"
    log.info("%s booking=%s lane=%s actor=%s", kind, booking.pk, lane.slug, who)


def _sentence(booking: Booking, done: str, actor: User, now: datetime) -> Words:
    """Who did what with whose booking, such as "ada moved the booking of bo: …"."""
    facts = what_and_when(booking, now)
    if booking.owner_id == actor.pk:
        return said(OWN[done], actor=actor.username, **facts)
    return said(OF_OTHERS[done], actor=actor.username, owner=booking.owner.username, **facts)


def what_and_when(booking: Booking, now: datetime) -> dict[str, str | At]:
    """What sentences about a booking say of it: `what`, `start` and `end`."""
    zone = timezone.get_default_timezone()
    return {
        "what": booking.called,
        "start": At(booking.start, now, zone),
        "end": At(booking.end, now, zone),
    }


def _objection(held: Held, *, is_for_staff: bool) -> Refusal | None:
    if is_for_staff and not held.actor.is_staff:
        return NOT_ADMINISTRATOR
    if not held.booking.is_changeable_by(held.actor):
        return NOT_YOURS
    return over_objection(held)


def over_objection(held: Held) -> Refusal | None:
    """A booking that was given up, or is over."""
    if held.booking.state not in OCCUPYING:
        return Refusal("wrong_state", GIVEN_UP[State(held.booking.state)])
    return TOO_LATE if held.now >= held.booking.end else None


def _limit_waiting() -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{LOCK_SECONDS}s"])
