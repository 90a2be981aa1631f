"""Celery's way to what people are told. Doubled, late or lost deliveries change nothing."""

from celery import shared_task

from bookings.failure_notices import tell_failures
from lanes import clock, notice_mail, ticks


@shared_task(name=ticks.NOTICES_TASK)
def tell(key: str = "") -> None:
    """Write the notices that are due and send those that wait; `key` names the request that this
    one answers, if it is no beat's."""
    if key:
        ticks.taken_up(key)
    now = clock.database_now()
    tell_failures(now)
    notice_mail.send_due()
