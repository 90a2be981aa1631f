"""Asking a worker to send a mail about an account, so that nobody waits for a mail server."""

import logging

from celery import current_app
from django.conf import settings
from kombu.exceptions import OperationalError

log = logging.getLogger(__name__)

INVITATION_MAIL = "slotserve.invitation_mail"
FAREWELL_MAIL = "slotserve.farewell_mail"


def is_sent() -> bool:
    """Whether e-mails leave this installation; without a mail server they go to the log alone."""
    return not settings.EMAIL_BACKEND.endswith("console.EmailBackend")


def ask_for(task: str, *arguments: object) -> bool:
    """Whether a worker was asked; False when the broker is away."""
    try:
        current_app.send_task(task, arguments, ignore_result=True)
    except OperationalError as error:
        log.warning("mail not asked for task=%s reason=%s", task, error)
        return False
    return True
