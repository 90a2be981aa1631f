"""Telling who was told that a booked model failed, that it runs."""

from datetime import datetime, timedelta

from django.db.models import QuerySet

from bookings.models import Booking, State
from lanes.models import Notice
from lanes.notices import News, tell_people
from notices.events import Channel, Event
from notices.facts import warm_bookings
from notices.preferences import channels_for, preference_of
from notices.wording import recovered_words

REMEMBERED = timedelta(days=7)  # a return after that is no news


def tell_recoveries(now: datetime) -> int:
    """Tell of each booking whose own model is loaded after all; how many were told. One query when
    nothing has failed lately."""
    lately = Notice.objects.filter(at__gt=now - REMEMBERED, booking_id_for__isnull=False)
    failed = _newest(lately.filter(kind=Event.FAILURE).select_related("recipient__preference"))
    if not failed:
        return 0
    known = set(lately.filter(kind=Event.RECOVERED).values_list("recipient_id", "key"))
    pks = set(warm_bookings()).intersection(notice.booking_id_for for notice in failed)
    going_on = Booking.objects.filter(pk__in=pks, state=State.CONFIRMED, end__gt=now)
    bookings = {booking.pk: booking for booking in going_on.select_related("lane", "preset")}
    return sum(
        _tell(notice, bookings[notice.booking_id_for], now)
        for notice in failed
        if notice.booking_id_for in bookings and (notice.recipient_id, _key(notice)) not in known
    )


def _newest(failed: QuerySet[Notice]) -> list[Notice]:
    """Of each person and booking: what failed in several ways runs again once."""
    return list(
        {(each.recipient_id, each.booking_id_for): each for each in failed.order_by("pk")}.values()
    )


def _tell(notice: Notice, booking: Booking, now: datetime) -> int:
    preference = preference_of(notice.recipient)
    words = recovered_words(booking.lane, booking.preset.name if booking.preset else "")
    is_quiet = Channel.APP not in channels_for(preference, Event.RECOVERED)
    news = News(
        _key(notice),
        Event.RECOVERED,
        words.sentence,
        words.advice,
        booking.lane,
        booking=booking.pk,
        is_quiet=is_quiet,
    )
    return tell_people([notice.recipient], news, now)


def _key(notice: Notice) -> str:
    return f"{Event.RECOVERED}:{notice.pk}"
