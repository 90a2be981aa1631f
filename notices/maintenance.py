"""Telling whoever has booked a lane of its maintenance: planned, changed, in the way no more.

Asked again and again. What was told is in the keys of notices.
"""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from bookings.models import OCCUPYING, Booking
from bookings.querysets import BookingQuerySet
from lanes.models import Maintenance, Notice
from lanes.notices import News, tell_people
from notices.closing import closing_news, times_of
from notices.endpoints import announce, site_words
from notices.events import Channel, Event
from notices.facts import dated_facts
from notices.payloads import booking_payload
from notices.preferences import channels_for, preference_of
from notices.wording import Words, maintenance_words

REMEMBERED = timedelta(days=7)  # the end of one is no news after that


def tell_maintenance(now: datetime) -> int:
    """Tell what is new to those whose slots it touches; how many were told. One query when there
    is no maintenance."""
    lasting = Q(ended_at=None) & (Q(end=None) | Q(end__gt=now))
    rows = list(Maintenance.objects.filter(lasting | Q(ended_at__gt=now - REMEMBERED)))
    if not rows:
        return 0
    concerned = list(bookings_concerned({row.lane_id for row in rows}, now))
    pairs = [(row, each) for row in rows for each in concerned if each.lane_id == row.lane_id]
    told = _told({booking.pk for _, booking in pairs})
    return sum(_tell(row, booking, told, now) for row, booking in pairs)


def is_in_the_way(row: Maintenance, booking: Booking) -> bool:
    """Whether it takes anything of the slot."""
    is_before = row.end is not None and row.end <= booking.start
    return row.ended_at is None and row.start < booking.end and not is_before


def bookings_concerned(lanes: Collection[int], now: datetime) -> BookingQuerySet:
    """Those of these lanes that are not over and lose time, or whose owners were told that they
    would: of all that are booked a few."""
    ends_later = Q(end=None) | Q(end__gt=OuterRef("start"))
    closing = Maintenance.objects.filter(
        ends_later, lane=OuterRef("lane"), ended_at=None, start__lt=OuterRef("end")
    )
    told = Notice.objects.filter(kind=Event.MAINTENANCE, booking_id_for=OuterRef("pk"))
    found = Booking.objects.filter(lane__in=lanes, state__in=OCCUPYING, end__gt=now)
    concerned = found.filter(Exists(closing) | Exists(told))
    return concerned.select_related("lane", "preset", "owner__preference", "entry")


def _told(bookings: Iterable[int]) -> dict[str, list[str]]:
    """The marks that people were told, the oldest first, by maintenance and booking."""
    found: dict[str, list[str]] = {}
    notices = Notice.objects.filter(kind=Event.MAINTENANCE, booking_id_for__in=bookings)
    for key in notices.order_by("pk").values_list("key", flat=True):
        about, _, mark = key.rpartition(":")
        found.setdefault(about, []).append(mark)
    return found


def _tell(row: Maintenance, booking: Booking, told: dict[str, list[str]], now: datetime) -> int:
    about = f"{Event.MAINTENANCE}:{row.pk}:{booking.pk}"
    times = times_of(row.start, row.end) if is_in_the_way(row, booking) else None
    news = closing_news(times, told.get(about, ()))
    if news is None:
        return 0
    key = f"{about}:{news.mark}"
    with transaction.atomic():
        words = maintenance_words(news.event, booking, row)
        with site_words():
            payload = booking_payload(booking, dated_facts(booking)[0], words)
        announce(Event.MAINTENANCE, key, payload, now)
        return _tell_owner(words, booking, key, now)


def _tell_owner(words: Words, booking: Booking, key: str, now: datetime) -> int:
    preference = preference_of(booking.owner)
    news = News(
        key,
        Event.MAINTENANCE,
        words.sentence,
        words.advice,
        booking.lane,
        booking=booking.pk,
        is_quiet=Channel.APP not in channels_for(preference, Event.MAINTENANCE),
    )
    return tell_people([booking.owner], news, now)
