"""Bookings as lists show them: with what the reader may do to each."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.utils import timezone

from bookings.models import Booking, Status
from bookings.refusals import Offering

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Row:
    """One booking, and what its buttons are."""

    booking: Booking
    is_mine: bool
    is_changeable: bool
    status: Status

    @property
    def is_in_progress(self) -> bool:
        """Whether it is given back rather than cancelled."""
        return self.status is Status.IN_PROGRESS


@dataclass(frozen=True, slots=True)
class Offer:
    """A free slot in whole minutes, and the query that fills the form with it."""

    start: datetime
    end: datetime
    query: str


def rows(bookings: Iterable[Booking], user: User, now: datetime) -> list[Row]:
    """The bookings in their order."""
    return [
        Row(
            booking=booking,
            is_mine=booking.owner_id == user.pk,
            is_changeable=booking.is_changeable_by(user),
            status=booking.status(now),
        )
        for booking in bookings
    ]


def offers(refusal: Offering | None, typed: dict[str, str]) -> list[Offer]:
    """The free slots of a refusal as links that keep what else was typed.

    Pickers know minutes: the part of the slot between its first and its last whole minute.
    """
    found = []
    for slot in refusal.nearest if refusal else ():
        start = (slot.start + MINUTE - timedelta.resolution).replace(second=0, microsecond=0)
        end = slot.end.replace(second=0, microsecond=0)
        if start < end:
            begins = (
                {"begins": "now"} if slot.is_now else {"begins": "later", "start": picked(start)}
            )
            found.append(Offer(start, end, urlencode(typed | begins | {"end": picked(end)})))
    return found


def picked(moment: datetime) -> str:
    """As a picker of the viewer's zone has it."""
    return timezone.localtime(moment).strftime("%Y-%m-%dT%H:%M")
