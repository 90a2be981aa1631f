"""Notices by e-mail, through Django's mail settings. Safe to skip, repeat and overlap.

A notice is claimed before it is sent: of two workers one sends it, and one that dies in between
leaves it for later. What cannot be sent is tried again after 1, 5 and 30 minutes, then no more:
the app shows it all the same.
"""

import logging
from datetime import datetime, timedelta
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend

from lanes import clock
from lanes.models import Notice

log = logging.getLogger(__name__)
MOST_AT_ONCE = 50
WAITS = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=30))


def send_due() -> int:
    """Send what is due, at most fifty; how many were sent."""
    now = clock.database_now()
    waiting = Notice.objects.filter(mail_from__lte=now).order_by("mail_from")
    due = list(waiting.select_related("recipient", "lane")[:MOST_AT_ONCE])
    claimed = [notice for notice in due if _claim(notice, now)]
    if not claimed:
        return 0
    connection = get_connection()
    return sum(_send(notice, connection) for notice in claimed)


def _claim(notice: Notice, now: datetime) -> bool:
    """Set when it is tried again should we not come to the end; False: another was first."""
    attempt = notice.mail_attempts
    again = now + WAITS[attempt] if attempt < len(WAITS) else None
    still = Notice.objects.filter(pk=notice.pk, mail_from=notice.mail_from, mail_attempts=attempt)
    return still.update(mail_from=again, mail_attempts=attempt + 1) == 1


def _send(notice: Notice, connection: BaseEmailBackend) -> bool:
    try:
        _message(notice, connection).send()
    except (SMTPException, OSError, ValueError) as error:
        log.warning("notice not sent notice=%s reason=%s", notice.pk, error)
        return False
    Notice.objects.filter(pk=notice.pk).update(mail_from=None)
    log.info("notice sent notice=%s key=%s", notice.pk, notice.key)
    return True


def _message(notice: Notice, connection: BaseEmailBackend) -> EmailMessage:
    about = f"{notice.lane.name}: " if notice.lane else ""
    subject = " ".join(f"SlotServe: {about}{notice.sentence}".split())
    lines = [notice.sentence, notice.advice, _where(notice)]
    return EmailMessage(
        subject[:150],
        "\n\n".join(line for line in lines if line) + "\n",
        settings.DEFAULT_FROM_EMAIL,
        [notice.recipient.email],
        connection=connection,
        headers={"Auto-Submitted": "auto-generated"},
    )


def _where(notice: Notice) -> str:
    """Where in the app there is more."""
    if not settings.SLOTSERVE_WEB_URL:
        return ""
    path = f"/lanes/{notice.lane.slug}/" if notice.lane else "/notices/"
    return settings.SLOTSERVE_WEB_URL.rstrip("/") + path
