"""From notices to what waits to be sent: by which ways each person is told of each.

Asked again and again: a notice is routed once, with its deliveries in one transaction.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import transaction

from lanes.models import Notice
from lanes.notices import QUIET
from notices.endpoints import announce, site_words
from notices.events import Channel, Event, event_of
from notices.models import Delivery, Subscription
from notices.payloads import notice_payload
from notices.preferences import channels_for, preference_of

NEWS_FOR = timedelta(days=1)  # what could not be sent for so long is none
MOST_AT_ONCE = 200
# What it is about, of the parts of a notice's key, where keys differ from person to person.
_PARTS = {"failure": 3, "host_away": 2, "host_back": 2}
_FROM_BELOW = (
    *(Event.FAILURE, Event.RECOVERED, Event.OUTSIDER, Event.HOST),
    *(Event.TRANSFERRED, Event.SHARED),
)


def route(now: datetime) -> int:
    """Route what was not; how many notices were."""
    waiting = Notice.objects.filter(routed_at=None, at__gt=now - NEWS_FOR)
    related = waiting.select_related("recipient__preference", "lane").order_by("pk")
    return sum(_route(notice, now) for notice in related[:MOST_AT_ONCE])


def _route(notice: Notice, now: datetime) -> bool:
    with transaction.atomic():
        if not Notice.objects.filter(pk=notice.pk, routed_at=None).update(routed_at=now):
            return False  # another worker was first
        Delivery.objects.bulk_create(_deliveries(notice, now))
        _announce(notice, now)
    return True


def _announce(notice: Notice, now: datetime) -> None:
    """What hosts and the planner tell goes to endpoints from here; the rest has gone already.

    Several people are told of one thing in words of their own, with keys of their own: endpoints
    are told of it once, and not again within the hour.
    """
    event = event_of(notice.kind)
    if event is None or event not in _FROM_BELOW:
        return
    parts = _PARTS.get(notice.kind)
    key = notice.key
    if parts is not None:
        thing = ":".join(notice.key.split(":")[:parts])
        key = f"{thing}:{notice.at.isoformat()}"
        told = Delivery.objects.filter(endpoint__isnull=False, key__startswith=f"{thing}:")
        if told.filter(created_at__gt=now - QUIET).exclude(key=key).exists():
            return
    with site_words():
        payload = notice_payload(notice)
    announce(event, key, payload, now)


def _deliveries(notice: Notice, now: datetime) -> Iterator[Delivery]:
    event, person = event_of(notice.kind), notice.recipient
    preference = preference_of(person)
    ways = channels_for(preference, event) if event else frozenset({Channel.APP, Channel.MAIL})
    if Channel.MAIL in ways and person.email:
        yield _delivery(notice, Channel.MAIL, now)
    if Channel.PUSH in ways:
        for subscription in Subscription.objects.filter(person=person):
            yield _delivery(notice, Channel.PUSH, now, subscription)


def _delivery(
    notice: Notice, channel: Channel, now: datetime, subscription: Subscription | None = None
) -> Delivery:
    return Delivery(
        channel=channel,
        notice=notice,
        subscription=subscription,
        event=notice.kind,
        key=notice.key,
        created_at=now,
        send_from=now,
    )
