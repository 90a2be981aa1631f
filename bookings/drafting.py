"""A booking before it is written."""

from bookings.models import Booking
from bookings.policies import Standing, claim_of
from bookings.rules import Wish
from bookings.settling import confirm_or_ask


def draft(standing: Standing, wish: Wish, purpose: str) -> Booking:
    """What is wished, for the member whose standing it is: pending where rules want approval and
    the member is no administrator."""
    owner, now = standing.owner, standing.now
    booking = Booking(
        lane=wish.lane,
        owner=owner,
        kind=wish.kind,
        preset=wish.preset,
        start=wish.start,
        end=wish.end,
        original_end=wish.end,
        created_at=now,
        purpose=purpose.strip(),
    )
    is_asked = not owner.is_staff and standing.judge.needs_approval(claim_of(booking, now))
    confirm_or_ask(booking, now, is_asked=is_asked)
    return booking
