"""Celery's way to what people are told. Doubled, late or lost deliveries change nothing."""

import logging

from celery import shared_task

from bookings.failure_notices import tell_failures
from bookings.host_notices import tell_hosts
from lanes import clock, notice_mail, ticks

log = logging.getLogger(__name__)


@shared_task(name=ticks.NOTICES_TASK)
def tell(key: str = "") -> None:
    """Write the notices that are due and send those that wait; `key` names the request that this
    one answers, if it is no beat's."""
    if key:
        ticks.taken_up(key)
    now = clock.database_now()
    for tell_of in (tell_failures, tell_hosts):
        try:
            tell_of(now)
        except Exception:  # one must not keep the other from being told
            log.exception("telling failed")
    notice_mail.send_in_turn()
