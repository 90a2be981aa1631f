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
from wire.words import remade, said

KIND = "failure"
TRIED_AGAIN = said(
    "It is tried again by itself; the lane's default serves meanwhile where there is one."
)


def tell_failures(now: datetime) -> int:
    """Tell of every failure in force whoever was not told yet; how many notices were written."""
    in_force = PresetFailure.objects.filter(count__gt=0).select_related("lane", "revision__preset")
    return sum(_tell(failure, now) for failure in in_force)


def _tell(failure: PresetFailure, now: datetime) -> int:
    booking = _booking_of(failure)
    reason, advice = _words_of(failure)
    about = f"failure:{failure.lane_id}:{failure.revision.preset_id}"
    people = {person.pk: person for person in administrators()}
    if booking is not None:
        people.pop(booking.owner_id, None)
    what = {"preset": str(failure.revision.preset), "lane": failure.lane.name, "reason": reason}
    words = said("{preset} does not run on {lane}: {reason}", **what)
    # First those whom it tells the plain fact, which is what chat rooms are told, too.
    news = News(about, KIND, words, advice, failure.lane, failure.since)
    told = tell_people(people.values(), news, now)
    if booking is None:
        return told
    words = said(
        "{preset} does not run on {lane} for your slot {slot}: {reason}",
        slot=slot(booking.start, booking.end, now, timezone.get_default_timezone()),
        **what,
    )
    news = News(
        f"{about}:booking-{booking.pk}:{failure.failure_kind}",  # once a slot and cause
        KIND,
        words,
        joined(advice, TRIED_AGAIN),
        failure.lane,
        booking=booking.pk,
    )
    return told + tell_people([booking.owner], news, now)


def _words_of(failure: PresetFailure) -> tuple[str, str]:
    """Why it failed and what to try, as they were made."""
    kept = failure.words or {}
    return (
        remade(failure.reason, kept.get("reason")),
        remade(failure.failure_advice, kept.get("advice")),
    )


def _booking_of(failure: PresetFailure) -> Booking | None:
    """The booking that it was tried for, while that is still to come or in progress."""
    if failure.booking_id_for is None:
        return None
    occupying = Booking.objects.filter(pk=failure.booking_id_for, state__in=OCCUPYING)
    return occupying.select_related("owner").first()
