"""Telling whoever asked for it that time has become free, and is still."""

from datetime import UTC, datetime, timedelta

from django.utils import timezone

from bookings.feasible import Judge, has_slot
from bookings.interval import Interval
from bookings.models import Booking
from bookings.policies import Rulebook, counted_of_all
from bookings.policy import ledger
from lanes.maintenance import within
from lanes.models import Lane
from lanes.notices import News, tell_people
from notices.closing import times_of
from notices.endpoints import announce, site_words
from notices.events import Channel, Event
from notices.models import Preference
from notices.payloads import lane_payload
from notices.preferences import channels_for
from notices.wording import freed_words

Piece = tuple[int, datetime, datetime]


def tell_freed(booking: Booking, sequence: int, piece: Piece, now: datetime) -> int:
    """Tell of the longest part that nobody has, unless it is shorter or later than a person wants
    to know; how many were told."""
    lane = Lane.objects.filter(pk=piece[0], enabled=True).first()
    if lane is None:
        return 0
    start, end = longest_free(lane, piece[1], piece[2])
    if end <= start:
        return 0
    key = f"{Event.FREED}:{booking.pk}:{sequence}:{times_of(start, end)}"
    with site_words():
        payload = lane_payload(lane, freed_words(lane, start, end), start=start, end=end)
    announce(Event.FREED, key, payload, now)
    return sum(
        _tell(each, lane, (start, end), key, now)
        for each in _asked(booking, lane, (start, end), now)
    )


def piece_of(key: str) -> tuple[datetime, datetime] | None:
    """The time that a notice of this key tells of; None: keys did not say it yet."""
    start, _, end = key.rpartition(":")[2].partition("-")
    if not end:
        return None
    read = [datetime.strptime(each, "%Y%m%dT%H%M%S").replace(tzinfo=UTC) for each in (start, end)]
    return read[0], read[1]


def longest_free(lane: Lane, start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """The longest part of [start, end) that nobody holds and no maintenance closes; of no length
    without one. Two queries."""
    best, free_from = (start, start), start
    for held in _in_the_way(lane, start, end):
        best = max(best, (free_from, max(free_from, held.start)), key=_length)
        free_from = max(free_from, held.end)
    return max(best, (free_from, max(free_from, end)), key=_length)


def _in_the_way(lane: Lane, start: datetime, end: datetime) -> list[Interval]:
    held = Booking.objects.in_the_way(lane.pk, start, end).values_list("start", "end")
    closed = within(start, end, [lane.pk]).filter(ended_at=None).values_list("start", "end")
    found = [Interval(begins, ends or end) for begins, ends in (*held, *closed)]
    return sorted(found, key=lambda each: each.start)


def _length(piece: tuple[datetime, datetime]) -> timedelta:
    return piece[1] - piece[0]


def _asked(
    booking: Booking, lane: Lane, piece: tuple[datetime, datetime], now: datetime
) -> list[Preference]:
    """Who wants to know of so much time so soon, and may book it; not whoever gave it back."""
    start, end = piece
    wanting = Preference.objects.filter(choices__has_key=Event.FREED.value, person__is_active=True)
    others = wanting.exclude(person=booking.owner_id).select_related("person")
    found = [
        each
        for each in others.prefetch_related("person__groups")
        if channels_for(each, Event.FREED)
        and end - start >= timedelta(minutes=each.freed_minutes)
        and start <= now + timedelta(days=each.freed_days)
    ]
    return _allowed(found, lane, Interval(start, end), now)


def _allowed(
    found: list[Preference], lane: Lane, piece: Interval, now: datetime
) -> list[Preference]:
    """Those whom the rules let book some of it; three queries."""
    if not found:
        return []
    book = Rulebook.read()
    counted = counted_of_all({each.person_id for each in found}, now)
    zone = timezone.get_default_timezone()

    def may(each: Preference) -> bool:
        rules = book.rules(each.person, lane)
        others = counted[each.person_id].values()
        judge = Judge(rules, ledger(rules, lane.pk, others, now, zone), now)
        return has_slot(judge, lane.pk, piece, timedelta(minutes=each.freed_minutes))

    return [each for each in found if may(each)]


def _tell(
    preference: Preference,
    lane: Lane,
    piece: tuple[datetime, datetime],
    key: str,
    now: datetime,
) -> int:
    words = freed_words(lane, *piece)
    is_quiet = Channel.APP not in channels_for(preference, Event.FREED)
    news = News(key, Event.FREED, words.sentence, words.advice, lane, is_quiet=is_quiet)
    return tell_people([preference.person], news, now)
