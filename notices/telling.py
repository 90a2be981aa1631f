"""Telling people of bookings. Asked again and again; safe to skip, repeat, overlap and kill.

What a booking was when it was told of, the notices of it and what goes to endpoints are written
together: either all of it is, or it is found due again at the next look.
"""

import logging
from collections.abc import Iterable
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from lanes.notices import News, administrators, tell_people
from notices.deciding import Due, due, freed
from notices.endpoints import announce, site_words
from notices.events import FOR_ADMINISTRATORS, Channel, Event
from notices.facts import Read, read_changed, read_near
from notices.freed import tell_freed
from notices.models import Entry
from notices.payloads import booking_payload
from notices.preferences import channels_for, preference_of
from notices.wording import words_of

log = logging.getLogger(__name__)


def tell_bookings(now: datetime) -> int:
    """Tell of every booking what is due and was not told yet; how many notices were written."""
    found = {read.booking.pk: read for read in (*read_near(now), *read_changed(now))}
    return sum(_guarded(read, now) for read in found.values())


def _guarded(read: Read, now: datetime) -> int:
    try:
        return _tell(read, now)
    except Exception:  # one booking must not keep all others from being told
        log.exception("telling failed booking=%s", read.booking.pk)
        return 0


def _tell(read: Read, now: datetime) -> int:
    wanted = due(read.facts, now)
    new = [each for each in wanted if not _is_told(each, read)]
    if not new and not read.facts.is_changed:
        return 0
    with transaction.atomic():
        if read.facts.is_changed and not _note(read, now):
            return 0  # another worker was first
        told = sum(_tell_event(each, read, now) for each in new)
        piece = freed(read.facts, now) if read.facts.is_changed else None
        if piece is not None:
            told += tell_freed(read.booking, read.facts.sequence, piece, now)
    return told


def _is_told(each: Due, read: Read) -> bool:
    """Whether its owner knows. Of what is for administrators the entry says so."""
    if each.event in FOR_ADMINISTRATORS:
        return False
    return (read.booking.owner_id, each.key) in read.told


def _note(read: Read, now: datetime) -> bool:
    """Write down what the booking is now; False: another was first."""
    facts = read.facts
    values = {
        "sequence": facts.sequence,
        "lane_id_then": facts.lane,
        "preset_id_then": facts.preset,
        "start": facts.start,
        "end": facts.end,
        "state": facts.state,
        "owner_id_then": facts.owner,
        "changed_at": now,
    }
    if facts.was is None:
        _, is_new = Entry.objects.get_or_create(booking=read.booking, defaults=values)
        return is_new
    seen = Entry.objects.filter(booking=read.booking, sequence=facts.was.sequence)
    return seen.update(**values) == 1


def _tell_event(each: Due, read: Read, now: datetime) -> int:
    event, booking = Event(each.event), read.booking
    words = words_of(event, booking, has_comment=False)
    with site_words():
        payload = booking_payload(booking, read.facts.sequence, words)
    announce(event, each.key, payload, now)
    return sum(_tell_person(person, each, read, now) for person in _people(event, read))


def _people(event: Event, read: Read) -> Iterable[User]:
    if event not in FOR_ADMINISTRATORS:
        return [read.booking.owner]
    return administrators().select_related("preference")


def _tell_person(person: User, each: Due, read: Read, now: datetime) -> int:
    preference, event = preference_of(person), Event(each.event)
    words = words_of(event, read.booking)
    news = News(
        each.key,
        event,
        words.sentence,
        words.advice,
        read.booking.lane,
        booking=read.booking.pk,
        is_quiet=Channel.APP not in channels_for(preference, event),
    )
    return tell_people([person], news, now)
