"""Telling people of hosts in trouble: administrators of each alarm, and of a host that does not
answer whoever has a slot there, now or within the hour; of that also that it is back.

Asked again and again like all else. Alarms do not follow a value that hovers (`lanes.alarms`), and
notices of one thing are an hour apart (`lanes.notices`).
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from django.utils import timezone

from bookings.models import Booking, State
from bookings.sentences import slot
from lanes.host_watch import GONE, alarms_of, hosts_with_facts, troubles_of
from lanes.models import Host, Notice
from lanes.notices import News, administrators, tell_people
from wire.words import At, Words, said

TROUBLE, AWAY, BACK = "host", "host_away", "host_back"
ALL = "all"  # in the key of a notice that is about no booking
SOON = timedelta(hours=1)  # slots that begin later have time to be told later
RETURNS_KEPT = timedelta(days=7)  # a return after that is no news
ADVICE = said(
    "Until it answers again, requests get 503 host_unreachable. The booking stays and nothing is "
    "lost by waiting; you may cancel it, or move it to another lane."
)


def tell_hosts(now: datetime) -> int:
    """Tell of every alarm in force, and of every return, whoever was not told yet; how many notices
    were written."""
    told = sum(_tell(host, now) for host in hosts_with_facts().exclude(alarms=[]))
    return told + _tell_returns(now)


def _tell(host: Host, now: datetime) -> int:
    told, alarms = 0, alarms_of(host, now)
    for trouble in troubles_of(host):
        alarm = alarms.get(trouble.code)
        if alarm is None or trouble.code not in host.alarm_times:
            continue  # since when is not written yet, and what is told is known by that
        is_gone = trouble.code in GONE
        about = f"{AWAY}:{host.key}" if is_gone else f"{TROUBLE}:{host.key}:{trouble.code}"
        people = {person.pk: person for person in administrators()}
        concerned = list(_concerned(host, now)) if is_gone else []
        for booking in concerned:
            people.pop(booking.owner_id, None)
        words, kind = said("{sentence}.", sentence=trouble.words), AWAY if is_gone else TROUBLE
        news = News(f"{about}:{ALL}", kind, words, trouble.hint, since=alarm.since)
        told += tell_people(people.values(), news, now)
        for booking in concerned:
            told += tell_people([booking.owner], _away(host, booking, alarm.since, now), now)
    return told


def _concerned(host: Host, now: datetime) -> Iterator[Booking]:
    """The slots there that are in progress or begin soon."""
    near = Booking.objects.filter(
        lane__host=host, state=State.CONFIRMED, end__gt=now, start__lte=now + SOON
    )
    yield from near.select_related("owner", "lane").order_by("start", "pk")


def _away(host: Host, booking: Booking, since: datetime, now: datetime) -> News:
    words = said(
        "{host} does not answer, so nothing is known of {lane}, where your slot {slot} is.",
        host=host.name,
        lane=booking.lane.name,
        slot=_slot(booking, now),
    )
    about = f"{AWAY}:{host.key}:{booking.pk}"
    return News(about, AWAY, words, ADVICE, booking.lane, since)


def _tell_returns(now: datetime) -> int:
    """Tell those who know that a host was away, and not that it is back; three queries when all
    know."""
    late = now - RETURNS_KEPT
    done = set(Notice.objects.filter(kind=BACK, at__gt=late).values_list("recipient_id", "key"))
    away = Notice.objects.filter(kind=AWAY, at__gt=late).select_related("recipient").order_by("pk")
    hosts = {host.key: host for host in Host.objects.all()}
    over = [
        notice
        for notice in away
        if (notice.recipient_id, _key_of_return(notice)) not in done and _is_over(notice, hosts)
    ]
    pks = [int(about) for about in map(_about, over) if about != ALL]
    kept = Booking.objects.filter(state=State.CONFIRMED, pk__in=pks).select_related("lane")
    bookings = {str(booking.pk): booking for booking in kept} if pks else {}
    return sum(_tell_return(notice, hosts[_host(notice)], bookings, now) for notice in over)


def _is_over(notice: Notice, hosts: Mapping[str, Host]) -> bool:
    """Whether the host is there; of one that was deleted nothing is told.

    It may have vanished again since the alarm that the notice tells of: then it is not back.
    """
    host = hosts.get(_host(notice))
    return host is not None and not GONE & set(host.alarms)


def _tell_return(notice: Notice, host: Host, bookings: Mapping[str, Booking], now: datetime) -> int:
    """Say that the host is there, unless the booking there was given up meanwhile; not that it is
    there again: it may be its first look."""
    words, lane = said("{host} answers now.", host=host.name), None
    if _about(notice) != ALL:
        booking = bookings.get(_about(notice))
        if booking is None or booking.lane.host_id != host.pk:
            return 0
        what, lane = _what_of(booking, now), booking.lane
        words = said("{host} answers now: {what}.", host=host.name, what=what)
    news = News(_key_of_return(notice), BACK, words, "", lane)
    return tell_people([notice.recipient], news, now)


def _host(notice: Notice) -> str:
    return notice.key.split(":", 3)[1]


def _about(notice: Notice) -> str:
    """The number of a booking, or that it is for administrators."""
    return notice.key.split(":", 3)[2]


def _what_of(booking: Booking, now: datetime) -> Words:
    lane = booking.lane.name
    if booking.end <= now:
        end = At(booking.end, now, timezone.get_default_timezone())
        return said("your slot on {lane} has ended meanwhile, at {end}", lane=lane, end=end)
    slot_words = _slot(booking, now)
    return said("your slot on {lane} {slot} goes on as booked", lane=lane, slot=slot_words)


def _slot(booking: Booking, now: datetime) -> Words:
    return slot(booking.start, booking.end, now, timezone.get_default_timezone())


def _key_of_return(notice: Notice) -> str:
    return notice.key.replace(AWAY, BACK, 1)
