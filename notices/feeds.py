"""A member's bookings as a calendar that other programs subscribe to."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from bookings.models import Booking
from notices.addresses import page_url
from notices.calendars import Dated, feed, single
from notices.facts import dated_facts
from notices.preferences import in_words_of, preference_of, zone_of

PAST = timedelta(days=30)  # calendars forget what is no longer in a feed
MOST = 1000


def feed_of(person: User, now: datetime) -> tuple[bytes, str]:
    """The calendar and its ETag: own bookings, cancelled ones too, from a month ago on. Two
    queries."""
    own = Booking.objects.filter(owner=person, original_end__gt=now - PAST)
    found = own.select_related("lane", "preset", "owner", "entry").order_by("-start")[:MOST]
    preference = preference_of(person)
    with in_words_of(preference):
        text = feed(_dated(found), zone_of(preference), _("SlotServe bookings"))
    return text, f'"{hashlib.sha256(text).hexdigest()[:32]}"'


def file_of(booking: Booking, person: User) -> bytes:
    """One booking as a calendar file for its owner, or for a guest, who is not told what for."""
    preference = preference_of(person)
    with in_words_of(preference):
        (dated,) = _dated([booking])
        shown = replace(dated, has_purpose=booking.is_changeable_by(person))
        return single(shown, zone_of(preference))


def _dated(bookings: Iterable[Booking]) -> list[Dated]:
    return [Dated(each, *dated_facts(each), page_url("booking", str(each.pk))) for each in bookings]
