"""Telling people of presets that fail: whose booking it is, and the administrators.

Asked again and again like all else; a notice's key says which failure it is about, so that each
person is told once of it and not at each of its retries.
"""

from datetime import datetime

from django.utils import timezone

from bookings.models import OCCUPYING, Booking
from bookings.sentences import slot
from lanes.failures.causes import joined
from lanes.models import PresetFailure
from lanes.notices import News, administrators, tell_people

KIND = "failure"
TRIED_AGAIN = "It is tried again by itself; the lane's default serves meanwhile where there is one."


def tell_failures(now: datetime) -> int:
    """Tell of every failure in force whoever was not told yet; how many notices were written."""
    in_force = PresetFailure.objects.filter(count__gt=0).select_related("lane", "revision__preset")
    return sum(_tell(failure, now) for failure in in_force)


def _tell(failure: PresetFailure, now: datetime) -> int:
    booking = _booking_of(failure)
    told, about = 0, f"failure:{failure.lane_id}:{failure.revision.preset_id}"
    people = {person.pk: person for person in administrators()}
    if booking is not None:
        people.pop(booking.owner_id, None)
        news = News(
            f"{about}:booking-{booking.pk}:{failure.failure_kind}",  # once a slot and cause
            KIND,
            f"{_what(failure)} for your slot {_slot(booking, now)}: {failure.reason}",
            joined(failure.failure_advice, TRIED_AGAIN),
            failure.lane,
            booking=booking.pk,
        )
        told = tell_people([booking.owner], news, now)
    words = f"{_what(failure)}: {failure.reason}"
    news = News(about, KIND, words, failure.failure_advice, failure.lane, failure.since)
    return told + tell_people(people.values(), news, now)


def _booking_of(failure: PresetFailure) -> Booking | None:
    """The booking that it was tried for, while that is still to come or in progress."""
    if failure.booking_id_for is None:
        return None
    occupying = Booking.objects.filter(pk=failure.booking_id_for, state__in=OCCUPYING)
    return occupying.select_related("owner").first()


def _what(failure: PresetFailure) -> str:
    return f"{failure.revision.preset} does not run on {failure.lane.name}"


def _slot(booking: Booking, now: datetime) -> str:
    return slot(booking.start, booking.end, now, timezone.get_default_timezone())
