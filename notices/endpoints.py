"""Chat rooms and webhooks: what is announced to them."""

import contextlib
from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.utils import timezone, translation

from lanes import audit, ticks
from lanes.models import Subject
from notices.events import Event
from notices.models import Delivery, Endpoint
from notices.payloads import Payload, iso


@contextlib.contextmanager
def site_words() -> Iterator[None]:
    """The installation's language and zone in force."""
    with (
        translation.override(settings.LANGUAGE_CODE),
        timezone.override(ZoneInfo(settings.TIME_ZONE)),
    ):
        yield


def announce(event: Event, key: str, payload: Payload, now: datetime) -> int:
    """Have each endpoint that is told of this event told, once a key; to how many it goes.

    In the caller's transaction; it is sent when that has been committed.
    """
    wanting = [each for each in Endpoint.objects.filter(is_on=True) if event in each.events]
    rows = [delivery_to(endpoint, event, key, payload, now) for endpoint in wanting]
    if rows:
        Delivery.objects.bulk_create(rows, ignore_conflicts=True)
        ticks.notices_soon()
    return len(rows)


def switch_off(endpoint: Endpoint) -> None:
    """Tell it nothing more, as it has said itself."""
    with transaction.atomic():
        if Endpoint.objects.filter(pk=endpoint.pk, is_on=True).update(is_on=False):
            was, now = {"is_on": True}, {"is_on": False}
            audit.note("endpoint.changed", None, about(endpoint), before=was, after=now)


def about(endpoint: Endpoint) -> audit.About:
    """It, for the audit trail."""
    return audit.About(Subject.ENDPOINT, endpoint.pk, endpoint.name)


def delivery_to(
    endpoint: Endpoint, event: str, key: str, payload: Payload, now: datetime
) -> Delivery:
    """What waits to be sent there."""
    told = {"type": event, "timestamp": iso(now), "data": {"key": key, **payload}}
    return Delivery(
        channel=endpoint.kind,
        endpoint=endpoint,
        event=event,
        key=key,
        payload=told,
        created_at=now,
        send_from=now,
    )
