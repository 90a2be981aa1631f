"""Whether what was to be told is still so, right before it is sent. Reads, and writes nothing.

What is not known here, as a kind of somebody else's, is sent as it was written.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

from bookings.models import OCCUPYING, Booking, BookingShare
from lanes.host_watch import GONE
from lanes.models import Host, Lane, Maintenance, Notice, PresetFailure
from notices.closing import OVER, times_of
from notices.deciding import OF_BOOKINGS, still_holds
from notices.events import Channel, Event
from notices.facts import read_one
from notices.freed import longest_free, piece_of
from notices.maintenance import is_in_the_way
from notices.models import Delivery
from notices.preferences import preference_of


def holds(delivery: Delivery, now: datetime) -> bool:
    """Whether to send it. Webhooks are told what happened at the time that they carry: of each
    change, in its order."""
    notice = delivery.notice
    if notice is None:
        return delivery.channel != Channel.CHAT or _holds_for_all(delivery, now)
    if notice.kind in OF_BOOKINGS and notice.booking_id_for is not None:
        facts = read_one(notice.booking_id_for)
        reader = notice.recipient_id
        return facts is not None and still_holds(notice.kind, notice.key, facts, now, reader)
    return _is_still_so(notice, now)


def _is_still_so(notice: Notice, now: datetime) -> bool:
    count, check = _CHECKS.get(notice.kind, (0, None))
    is_known = len(notice.key.split(":")) >= count  # an older release may have made other keys
    return check is None or not is_known or check(notice, now)


def _holds_for_all(delivery: Delivery, now: datetime) -> bool:
    """The same for a chat room, which reads as people do."""
    if delivery.event == Event.FREED:
        return _is_free_as_told(delivery, now)
    if delivery.event not in OF_BOOKINGS:
        return _is_still_so(_notice_of(delivery), now)
    event, _, rest = delivery.key.partition(":")
    booking = rest.partition(":")[0]
    if event != delivery.event or not booking.isdecimal():
        return True
    facts = read_one(int(booking))
    return facts is not None and still_holds(delivery.event, delivery.key, facts, now, facts.owner)


def _notice_of(delivery: Delivery) -> Notice:
    """What a person was told of it; where several were, by keys of their own, what all have in
    common."""
    kind = delivery.payload.get("data", {}).get("kind", delivery.event)
    found = Notice.objects.filter(kind=kind, key=delivery.key).first()
    return found or Notice(kind=kind, key=delivery.key)


def _is_free_as_told(delivery: Delivery, now: datetime) -> bool:
    """Whether nobody has any of what is left of it."""
    piece = piece_of(delivery.key)
    data = delivery.payload.get("data", {})
    lane = Lane.objects.filter(slug=(data.get("lane") or {}).get("slug"), enabled=True).first()
    if piece is None or lane is None:
        return piece is None
    left = (max(piece[0], now), piece[1])
    return left[0] < left[1] and longest_free(lane, *left) == left


def _is_going_on(pk: int | None, now: datetime) -> bool:
    live = Booking.objects.filter(state__in=OCCUPYING, end__gt=now)
    return pk is not None and live.filter(pk=pk).exists()


def _is_shared(notice: Notice, now: datetime) -> bool:
    shared = BookingShare.objects.filter(booking=notice.booking_id_for, member=notice.recipient_id)
    return shared.exists() and _is_going_on(notice.booking_id_for, now)


def _is_newest_transfer(notice: Notice, _: datetime) -> bool:
    later = Notice.objects.filter(kind=notice.kind, booking_id_for=notice.booking_id_for)
    return not later.filter(recipient=notice.recipient_id, pk__gt=notice.pk).exists()


def _still_fails(notice: Notice, now: datetime) -> bool:
    lane, preset = map(int, notice.key.split(":")[1:3])
    failing = PresetFailure.objects.filter(lane=lane, revision__preset=preset, count__gt=0)
    is_for_slot = notice.booking_id_for is not None
    return failing.exists() and (not is_for_slot or _is_going_on(notice.booking_id_for, now))


def _is_slot_going_on(notice: Notice, now: datetime) -> bool:
    return notice.booking_id_for is None or _is_going_on(notice.booking_id_for, now)


def _is_slot_intruded(notice: Notice, now: datetime) -> bool:
    booking = notice.key.split(":")[2]
    return not booking.isdecimal() or _is_going_on(int(booking), now)


def _is_free(notice: Notice, now: datetime) -> bool:
    """Whether as much of it as the reader wants to know of is."""
    piece = piece_of(notice.key)
    if piece is None or notice.lane is None:
        return True
    start, end = longest_free(notice.lane, max(piece[0], now), max(piece[1], now))
    least = preference_of(notice.recipient).freed_minutes
    return notice.lane.enabled and end - start >= timedelta(minutes=least)


def _is_closed_so(notice: Notice, now: datetime) -> bool:
    """Whether the maintenance means the same for the slot as when it was told of."""
    _, pk, booking_pk, mark = notice.key.split(":")
    booking = Booking.objects.filter(pk=booking_pk, state__in=OCCUPYING, end__gt=now).first()
    if booking is None:
        return False
    row = Maintenance.objects.filter(pk=pk).first()
    is_there = row is not None and is_in_the_way(row, booking)
    times = times_of(row.start, row.end) if row is not None and is_there else OVER
    return mark.partition(".")[2] == times


def _is_host_away(notice: Notice, _: datetime) -> bool:
    host = Host.objects.filter(key=notice.key.split(":")[1]).first()
    return host is not None and bool(GONE & set(host.alarms))


def _is_host_there(notice: Notice, now: datetime) -> bool:
    return not _is_host_away(notice, now)


def _is_host_in_trouble(notice: Notice, _: datetime) -> bool:
    key, code = notice.key.split(":")[1:3]
    host = Host.objects.filter(key=key).first()
    return host is not None and code in host.alarms


# Of each kind how many parts its keys have that are read, and the check.
_CHECKS: Mapping[str, tuple[int, Callable[[Notice, datetime], bool]]] = MappingProxyType(
    {
        Event.SHARED.value: (0, _is_shared),
        Event.TRANSFERRED.value: (0, _is_newest_transfer),
        Event.FAILURE.value: (3, _still_fails),
        Event.RECOVERED.value: (0, _is_slot_going_on),
        Event.OUTSIDER.value: (3, _is_slot_intruded),
        Event.FREED.value: (4, _is_free),
        Event.MAINTENANCE.value: (4, _is_closed_so),
        Event.HOST.value: (3, _is_host_in_trouble),
        "host_away": (2, _is_host_away),
        "host_back": (2, _is_host_there),
    }
)
