"""Links that extend or release a slot without a log-in: for one use, until the slot ends.

Looking at one does nothing, because programs that look for viruses in mails do that too.
"""

import logging
import secrets
from datetime import datetime, timedelta

from django.db import transaction

from bookings import services, waitlist
from bookings.models import Booking, State
from lanes import clock
from lanes.refusals import Refusal
from notices.models import Link
from notices.preferences import digest
from wire.words import said

log = logging.getLogger(__name__)
EXTEND_MINUTES = 30
KEPT = timedelta(days=1)  # after its end, so that it is said what became of it
UNKNOWN = Refusal("not_found", said("This link is not known. Log in to change your booking."))
USED = Refusal(
    "wrong_state", said("This link has been used already. Log in to change your booking.")
)
EXPIRED = Refusal("too_late", said("This link has ended with its slot."))
INACTIVE = Refusal("not_yours", said("Whom this link was made for is no member any more."))
GIVEN = Refusal("not_yours", said("The booking was transferred to somebody else meanwhile."))


def make_link(booking: Booking, action: Link.Action) -> str:
    """A new link's secret; only its digest is kept."""
    secret = secrets.token_urlsafe(32)
    Link.objects.create(
        digest=digest(secret),
        booking=booking,
        person=booking.owner,
        action=action,
        minutes=EXTEND_MINUTES if action == Link.Action.EXTEND else 0,
        expires_at=_end_of(booking, action),
    )
    return secret


def _end_of(booking: Booking, action: Link.Action) -> datetime:
    """Until when there is something to do."""
    is_hold = booking.state == State.HELD or action == Link.Action.CONFIRM
    return booking.held_until or booking.end if is_hold else booking.end


def look_up(secret: str) -> Link | Refusal:
    """The link of this secret that can be used now. Refusals: not_found, wrong_state, too_late,
    not_yours."""
    found = Link.objects.select_related("booking__lane", "booking__preset", "person__preference")
    link = found.filter(digest=digest(secret)).first()
    if link is None:
        return UNKNOWN
    if link.used_at is not None:
        return USED
    if not link.person.is_active:
        return INACTIVE
    if link.booking.owner_id != link.person_id:
        return GIVEN
    return EXPIRED if link.expires_at <= clock.database_now() else link


def use(secret: str) -> Booking | Refusal:
    """Do what the link is for. Refusals: those of `look_up` and of the service; after one of the
    service's it can be used again."""
    found = look_up(secret)
    if isinstance(found, Refusal):
        return found
    with transaction.atomic():
        unused = Link.objects.filter(pk=found.pk, used_at=None)
        if not unused.update(used_at=clock.database_now()):
            return USED
        done = _do(found)
        if isinstance(done, Refusal):
            transaction.set_rollback(True)
            return done
    log.info("link used action=%s booking=%s", found.action, found.booking_id)
    return done


def forget_old(now: datetime) -> None:
    """Drop what ended long ago."""
    Link.objects.filter(expires_at__lt=now - KEPT).delete()


def _do(link: Link) -> Booking | Refusal:
    if link.action == Link.Action.CONFIRM:
        return waitlist.confirm(link.booking, actor=link.person)
    if link.action == Link.Action.RELEASE:
        return services.release(link.booking, actor=link.person)
    end = link.booking.end + timedelta(minutes=link.minutes)
    return services.extend(link.booking, actor=link.person, end=end)
