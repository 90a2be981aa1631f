"""What its owner gives up too late for others to use: quotas count it as used."""

from datetime import datetime

from bookings.models import Booking
from bookings.policies import rules_for
from bookings.policy import is_late_cancel
from bookings.settling import Held
from bookings.states import Lapse, State, Status


def is_given_up_late(held: Held) -> bool:
    """Whether its owner would give up now what was theirs too late; once it has begun, what is left
    is released, which counts nothing."""
    booking = held.booking
    if booking.state != State.CONFIRMED or held.actor.pk != booking.owner_id:
        return False
    if booking.status(held.now) is Status.IN_PROGRESS:
        return False
    return is_late_cancel(rules_for(booking.owner, booking.lane), booking.start, held.now)


def left_behind(held: Held, lane_pk: int, start: datetime, end: datetime) -> list[Booking]:
    """The time that a booking leaves when it becomes [start, end) on that lane, if that is too
    late: as bookings that were cancelled late, not written yet."""
    booking = held.booking
    if not is_given_up_late(held):
        return []
    pieces = [(booking.start, booking.end)]
    if lane_pk == booking.lane_id:
        before = (booking.start, min(booking.end, start))
        pieces = [before, (max(booking.start, end), booking.end)]
    return [_lapsed(held, *piece) for piece in pieces if piece[0] < piece[1]]


def _lapsed(held: Held, start: datetime, end: datetime) -> Booking:
    booking = held.booking
    return Booking(
        lane=booking.lane,
        owner=booking.owner,
        kind=booking.kind,
        preset=booking.preset,
        start=start,
        end=end,
        original_end=end,
        state=State.CANCELLED,
        lapse=Lapse.LATE_CANCEL,
        created_at=held.now,
        confirmed_at=booking.confirmed_at,
    )
