"""Notices by e-mail, through Django's mail settings. Safe to skip, repeat and overlap.

Whatever the mail server does, one thread of all workers waits for it, and for less than a minute;
when it does not answer, nobody asks it for the next. A notice is claimed right before it is sent:
of two workers one sends it. It is sent again only when it is known not to have arrived, after 1, 5
and 30 minutes, then no more: the app shows it all the same. Where that is not known, because the
server vanished at the end of a mail, it is not. A worker that dies between sending and noting so is
the one case in which somebody gets a mail twice.
"""

import contextlib
import logging
import time
from datetime import datetime, timedelta
from smtplib import SMTPException, SMTPServerDisconnected

import redis
from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend

from lanes import clock, ticks
from lanes.models import Notice
from lanes.smtp import InDoubtError

log = logging.getLogger(__name__)
TURN = "ss:mail:turn"
TURN_SECONDS = 60.0  # longer than a connection may last (`lanes.smtp`) and takes to be made
MOST_AT_ONCE = 10
BEGIN_SECONDS = 15.0  # later in a turn no other mail is begun
WAITS = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=30))
NEWS_FOR = timedelta(days=1)  # what could not be sent for so long is none


def send_in_turn() -> int:
    """Send what is due unless somebody is at it, or the server did not answer a minute ago; how
    many were sent. Without Valkey nobody can tell, and nothing is sent."""
    turn = ticks.valkey().lock(TURN, timeout=TURN_SECONDS, thread_local=False)
    try:
        if not turn.acquire(blocking=False):
            return 0
        sent = send_due()
        with contextlib.suppress(redis.exceptions.LockError):  # it took longer
            turn.release()
        return sent
    except redis.RedisError as error:
        log.warning("mail not sent: Valkey does not answer reason=%s", error)
    except OSError as error:  # smtplib's errors are among them; the turn lapses by itself
        log.warning("mail not sent: the server does not take it reason=%s", error)
    return 0


def send_due() -> int:
    """Send what is due, a few at most; how many were sent. Errors: OSError when the server does not
    answer, or stops to."""
    now, latest = clock.database_now(), time.monotonic() + BEGIN_SECONDS
    waiting = Notice.objects.filter(mail_from__lte=now, at__gt=now - NEWS_FOR)
    due = list(waiting.select_related("recipient", "lane").order_by("mail_from")[:MOST_AT_ONCE])
    if not due:
        return 0
    connection, sent = get_connection(), 0
    connection.open()  # before anything is claimed: a server that is away uses no attempts up
    try:
        for notice in due:
            if time.monotonic() < latest and _claim(notice, clock.database_now()):
                sent += _send(notice, connection)
    finally:
        with contextlib.suppress(OSError):
            connection.close()
    return sent


def _claim(notice: Notice, now: datetime) -> bool:
    """Set when it is tried again should we not come to the end; False: another was first."""
    attempt = notice.mail_attempts
    again = now + WAITS[attempt] if attempt < len(WAITS) else None
    still = Notice.objects.filter(pk=notice.pk, mail_from=notice.mail_from, mail_attempts=attempt)
    return still.update(mail_from=again, mail_attempts=attempt + 1) == 1


def _send(notice: Notice, connection: BaseEmailBackend) -> bool:
    """Send one; False: it was refused. Errors: OSError when the server has gone."""
    try:
        _message(notice, connection).send()
    except InDoubtError:
        log.warning("notice perhaps not sent, and not tried again notice=%s", notice.pk)
        _done(notice)
        raise
    except SMTPServerDisconnected:
        raise
    except (SMTPException, ValueError) as error:
        log.warning("notice not sent notice=%s reason=%s", notice.pk, error)
        return False
    _done(notice)
    log.info("notice sent notice=%s key=%s", notice.pk, notice.key)
    return True


def _done(notice: Notice) -> None:
    Notice.objects.filter(pk=notice.pk).update(mail_from=None)


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
