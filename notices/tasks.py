"""Celery's way to what people are told. Doubled, late or lost deliveries change nothing."""

import logging
from collections.abc import Callable, Iterable
from datetime import datetime

from celery import shared_task

from bookings.failure_notices import tell_failures
from bookings.host_notices import tell_hosts
from lanes import clock, ticks
from lanes.events import forget_old as forget_events
from lanes.notices import forget_old as forget_notices
from notices import links, outbox
from notices.chat import send_chats
from notices.mail import send_mails
from notices.maintenance import tell_maintenance
from notices.push import send_pushes
from notices.recovered import tell_recoveries
from notices.routing import route
from notices.telling import tell_bookings
from notices.webhooks import send_webhooks

log = logging.getLogger(__name__)
STEPS = (tell_failures, tell_hosts, tell_recoveries, tell_bookings, tell_maintenance, route)
SENDING = (send_mails, send_pushes, send_webhooks, send_chats)
FORGETTING = (forget_notices, forget_events, outbox.forget_old, links.forget_old)


@shared_task(name=ticks.NOTICES_TASK)
def tell(key: str = "") -> None:
    """Write the notices that are due and send those that wait; `key` names the request that this
    one answers, if it is no beat's."""
    if key:
        ticks.taken_up(key)
    _take(STEPS)
    for send in SENDING:
        try:
            send()
        except Exception:
            log.exception("sending failed")


@shared_task(name="slotserve.forget")
def forget() -> None:
    """Every ten minutes: drop notices, lanes' events, deliveries and links that are long over."""
    _take(FORGETTING)


def _take(steps: Iterable[Callable[[datetime], object]]) -> None:
    now = clock.database_now()
    for step in steps:
        try:
            step(now)
        except Exception:  # one must not keep the others from being taken
            log.exception("step failed")
