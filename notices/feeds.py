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
    """The calendar and its ETag: own bookings and those that are shared with the person, cancelled
    ones too, from a month ago on. Two queries."""
    theirs = Booking.objects.filter(owner=person) | Booking.objects.shared_with(person)
    recent = theirs.filter(original_end__gt=now - PAST).order_by("-start")
    found = recent.select_related("lane", "preset", "owner", "entry")[:MOST]
    preference = preference_of(person)
    with in_words_of(preference):
        shown = [_shown(dated, person) for dated in _dated(found)]
        text = feed(shown, zone_of(preference), _("SlotServe bookings"))
    return text, f'"{hashlib.sha256(text).hexdigest()[:32]}"'


def file_of(booking: Booking, person: User) -> bytes:
    """One booking as a calendar file for its owner, or for a guest, who is not told what for."""
    preference = preference_of(person)
    with in_words_of(preference):
        (dated,) = _dated([booking])
        return single(_shown(dated, person), zone_of(preference))


def _shown(dated: Dated, person: User) -> Dated:
    """Guests are not told what for."""
    return replace(dated, has_purpose=dated.booking.is_changeable_by(person))


def _dated(bookings: Iterable[Booking]) -> list[Dated]:
    return [Dated(each, *dated_facts(each), page_url("booking", str(each.pk))) for each in bookings]
