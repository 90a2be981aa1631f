"""What rules do to bookings as time passes: those nobody approved expire, those nobody uses end.

Looked at again and again; safe to skip, to repeat and to run twice at once.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db.models import Q

from bookings.models import Booking, Policy
from bookings.policies import Rulebook
from bookings.policy import pending_ends
from bookings.querysets import BookingQuerySet
from bookings.settling import Answer, Held, hold, settle, tell_rule
from bookings.states import Kind, Lapse, State
from lanes.models import Phase, Runtime
from lanes.refusals import Refusal
from wire.words import said

NOT_DUE = Refusal("wrong_state", said("This booking is not what it was: nothing is done."))


@dataclass(frozen=True, slots=True)
class Silence:
    """Lanes that nobody uses at a moment, and since when the gateway was heard without a gap: what
    was asked for before that, nobody may ever know. None: it is not heard."""

    lanes: Collection[str]
    since: datetime | None


# Which of these lanes, by slug, nobody uses at this moment; what is unknown is not.
Listen = Callable[[Collection[str], datetime], Silence]


def expire_pending(now: datetime) -> int:
    """Have bookings expire that waited for approval as long as their rules allow; how many."""
    if not Policy.objects.filter(pending_hours__gt=0).exists():
        return 0
    book = Rulebook.read()
    waiting = Booking.objects.filter(state=State.PENDING, end__gt=now)
    due = [booking for booking in _with_owners(waiting) if _is_lapsed(booking, book, now)]
    return sum(isinstance(_under_lock(each, partial(_expire, book)), Booking) for each in due)


def release_no_shows(now: datetime, listen: Listen) -> int:
    """Release slots of models that nobody used since they were ready; how many. Time in which the
    gateway was not heard excuses: the wait begins anew after it."""
    if not Policy.objects.filter(no_show_minutes__gt=0).exists():
        return 0
    book = Rulebook.read()
    running = Booking.objects.filter(
        state=State.CONFIRMED, kind=Kind.MODEL, start__lt=now, end__gt=now, first_request_at=None
    )
    found = list(_with_owners(running))
    heard = listen({booking.lane.slug for booking in found}, now) if found else Silence((), None)
    quiet = [each for each in found if each.lane.slug in heard.lanes]
    missed = [each for each in quiet if _is_missed(each, book, heard, now)]
    work = partial(_release, book, heard)
    return sum(isinstance(_under_lock(each, work), Booking) for each in missed)


def note_first_requests(moments: Mapping[int, datetime]) -> None:
    """Somebody came: the first requests that bookings (by primary key) were given. Later ones
    change nothing. One query when there is nothing new."""
    if not moments:
        return
    unused = Booking.objects.filter(pk__in=moments, first_request_at=None)
    for pk in unused.values_list("pk", flat=True):
        Booking.objects.filter(pk=pk, first_request_at=None).update(first_request_at=moments[pk])


def _with_owners(bookings: BookingQuerySet) -> BookingQuerySet:
    return bookings.select_related("lane", "owner").prefetch_related("owner__groups")


def _under_lock(booking: Booking, work: Callable[[Held], Answer]) -> Answer:
    """Settle what a rule does, with the booking as it is then; its owner stands for the actor."""

    def settled() -> Answer:
        held = hold(booking, booking.owner)
        return held if isinstance(held, Refusal) else work(held)

    return settle(settled)


def _is_lapsed(booking: Booking, book: Rulebook, now: datetime) -> bool:
    if booking.state != State.PENDING:
        return False
    ends = pending_ends(
        book.rules(booking.owner, booking.lane),
        booking.asked_at or booking.created_at,
        booking.start,
    )
    return ends is not None and ends <= now


def _expire(book: Rulebook, held: Held) -> Answer:
    booking = held.booking
    if not _is_lapsed(booking, book, held.now):
        return NOT_DUE
    booking.state = State.EXPIRED
    booking.save(update_fields=["state"])
    tell_rule(booking, "expired", held.now)
    return booking


def _is_missed(booking: Booking, book: Rulebook, heard: Silence, now: datetime) -> bool:
    """Whether it was its owner's, its model ready and the gateway heard so long without a
    request."""
    if booking.state != State.CONFIRMED or booking.first_request_at or now >= booking.end:
        return False
    minutes = book.rules(booking.owner, booking.lane).no_show_minutes
    since = _usable_since(booking) if minutes and heard.since else None
    if since is None or heard.since is None:
        return False
    return max(since, heard.since) + timedelta(minutes=minutes) <= now


def _usable_since(booking: Booking) -> datetime | None:
    """From when its owner could use the booked model; None: not yet, as while it fails."""
    is_it = Q(revision__preset=booking.preset_id)
    server = Runtime.objects.filter(is_it, lane=booking.lane_id, ended_at=None, phase=Phase.READY)
    ready_at = server.values_list("ready_at", flat=True).first()
    if not ready_at:
        return None
    return max(booking.active_from, ready_at, booking.owner_since or ready_at)


def _release(book: Rulebook, heard: Silence, held: Held) -> Answer:
    booking, now = held.booking, held.now
    if not _is_missed(booking, book, heard, now):
        return NOT_DUE
    booking.end = booking.released_at = now
    booking.lapse = Lapse.NO_SHOW
    booking.save(update_fields=["end", "released_at", "lapse"])
    minutes = book.rules(booking.owner, booking.lane).no_show_minutes
    tell_rule(booking, "no_show", now, minutes=minutes)
    return booking
