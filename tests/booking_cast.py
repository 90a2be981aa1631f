"""What tests of bookings say again and again: ask for a booking, and look at the answer."""

from datetime import datetime
from typing import Any

from django.contrib.auth.models import User

from bookings import services
from bookings.models import Booking
from bookings.refusals import SlotTaken
from lanes.models import Lane
from lanes.refusals import Refusal
from tests import builders
from tests.builders import at


def ask(lane: Lane, owner: User | None = None, **changed: Any) -> Booking | Refusal:
    """Ask for the whole GPU from 13:00 to 14:00, or for something else."""
    wish: dict[str, Any] = {
        "owner": owner or builders.person(),
        "lane": lane,
        "kind": "gpu",
        "preset": None,
        "start": at(60),
        "end": at(120),
    }
    return services.book(**(wish | changed))


def booked(lane: Lane, owner: User | None = None, **changed: Any) -> Booking:
    """The same, where it must succeed."""
    return done(ask(lane, owner, **changed))


def done(answer: Booking | Refusal) -> Booking:
    """A booking; a refusal fails the test with its words."""
    assert isinstance(answer, Booking), answer
    return answer


def code(answer: Booking | Refusal) -> str:
    """The refusal's code; "" for a booking."""
    return answer.code if isinstance(answer, Refusal) else ""


def taken(answer: Booking | Refusal) -> SlotTaken:
    """A refusal because of others."""
    assert isinstance(answer, SlotTaken), answer
    return answer


def times(booking: Booking) -> tuple[datetime, datetime]:
    """As the database has them."""
    booking.refresh_from_db()
    return booking.start, booking.end
