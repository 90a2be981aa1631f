"""Notices by e-mail, through Django's mail settings: text, HTML and, of bookings, a calendar.

Whatever the mail server does, it is waited for less than a minute (`lanes.smtp`); when it does not
answer, nobody asks it for the next.
"""

import contextlib
from email.charset import BASE64, Charset
from email.mime.nonmultipart import MIMENonMultipart
from email.utils import parseaddr
from smtplib import SMTPException, SMTPServerDisconnected
from typing import Any

from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.template.loader import render_to_string
from django.utils.translation import get_language

from bookings.models import Booking, State
from lanes import clock
from lanes.models import Notice
from lanes.smtp import InDoubtError
from notices.addresses import page_url
from notices.calendars import Dated, invitation
from notices.deciding import OF_CHANGES
from notices.events import Channel
from notices.facts import dated_facts
from notices.links import EXTEND_MINUTES, make_link
from notices.models import Delivery, Link
from notices.outbox import SENT, Outcome, in_turn, note, refused, send_all, waiting
from notices.preferences import in_words_of, preference_of, zone_of

LONGEST_SUBJECT = 150
_FOR_CALENDARS = OF_CHANGES - {"decision_needed"} | {"transferred"}
_INVITES = ("confirmed", "approved", "transferred")
_LINKS = {
    "offered": (Link.Action.CONFIRM, Link.Action.RELEASE),
    "starting": (Link.Action.RELEASE,),
    "ending": (Link.Action.EXTEND, Link.Action.RELEASE),
}


def send_mails() -> int:
    """Send the mails that are due, in turn; how many were sent."""
    return in_turn(Channel.MAIL, send_due)


def send_due() -> int:
    """Send what is due, a few at most; how many were sent. Errors: OSError when the server does not
    answer, or stops to."""
    due = waiting(Channel.MAIL, clock.database_now())
    if not due:
        return 0
    connection = get_connection()
    connection.open()  # before anything is claimed: a server that is away uses no attempts up
    try:
        return send_all(due, lambda delivery: _send(delivery, connection))
    finally:
        with contextlib.suppress(OSError):
            connection.close()


def message_of(
    notice: Notice, connection: BaseEmailBackend | None = None
) -> EmailMultiAlternatives:
    """A notice as an e-mail, in the words of its reader."""
    person, booking = notice.recipient, _booking(notice)
    with in_words_of(preference_of(person)):
        context = _context(notice, booking)
        about = f"{notice.lane.name}: " if notice.lane and booking is None else ""
        subject = " ".join(f"SlotServe: {about}{notice.told_sentence}".split())
        mail = EmailMultiAlternatives(
            subject[:LONGEST_SUBJECT],
            render_to_string("notices/mail.txt", context),
            settings.DEFAULT_FROM_EMAIL,
            [person.email],
            connection=connection,
            headers={"Auto-Submitted": "auto-generated", "Message-ID": _id_of(notice)},
        )
        mail.attach_alternative(render_to_string("notices/mail.html", context), "text/html")
        if booking is not None and _is_for_calendars(notice, booking):
            mail.attach(_calendar(booking, notice))
    return mail


def _send(delivery: Delivery, connection: BaseEmailBackend) -> Outcome:
    """Send one. Errors: OSError when the server has gone."""
    assert delivery.notice is not None  # noqa: S101 - a mail is always of one
    try:
        message_of(delivery.notice, connection).send()
    except InDoubtError as error:
        note(delivery, Outcome(Delivery.State.IN_DOUBT, str(error)))
        raise
    except SMTPServerDisconnected as error:
        note(delivery, refused(str(error)))
        raise
    except (SMTPException, ValueError) as error:
        return refused(str(error))
    return SENT


def _id_of(notice: Notice) -> str:
    """The same however often it is sent: mail programs show such ones once."""
    domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2] or "slotserve"
    return f"<notice-{notice.pk}-{notice.at:%Y%m%d%H%M%S%f}@{domain}>"


def _booking(notice: Notice) -> Booking | None:
    if notice.booking_id_for is None:
        return None
    found = Booking.objects.select_related("lane", "preset", "owner", "entry")
    return found.filter(pk=notice.booking_id_for).first()


def _context(notice: Notice, booking: Booking | None) -> dict[str, Any]:
    return {
        "notice": notice,
        "language": get_language(),
        "url": _where(notice, booking),
        "preferences": page_url("preferences"),
        "minutes": EXTEND_MINUTES,
        "is_offer": notice.kind == "offered",
        **(_links(notice, booking) if booking is not None else {}),
    }


def _links(notice: Notice, booking: Booking) -> dict[str, str]:
    """What works without a log-in: for its owner, who may be another than a moment ago."""
    if not settings.SLOTSERVE_WEB_URL or booking.owner_id != notice.recipient_id:
        return {}
    actions = _LINKS.get(notice.kind, ())
    return {action.value: page_url("once", make_link(booking, action)) for action in actions}


def _where(notice: Notice, booking: Booking | None) -> str:
    """Where in the app there is more: on the booking's page, for who may see it."""
    if booking is not None:
        is_theirs = notice.kind == "shared" or booking.is_changeable_by(notice.recipient)
        return page_url("booking", str(booking.pk)) if is_theirs else page_url("bookings")
    return page_url("lane", notice.lane.slug) if notice.lane else page_url("notices")


def _is_for_calendars(notice: Notice, booking: Booking) -> bool:
    """Whether it changes what the reader's calendar has: of what waits for approval, and always
    did, it has nothing that could end."""
    if notice.kind not in _FOR_CALENDARS or booking.state != State.PENDING:
        return notice.kind in _FOR_CALENDARS
    before = Notice.objects.filter(booking_id_for=booking.pk, recipient=notice.recipient_id)
    return before.filter(kind__in=_INVITES, pk__lt=notice.pk).exists()


def _calendar(booking: Booking, notice: Notice) -> MIMENonMultipart:
    """The part that calendars look for: its method stands in its type as well."""
    is_theirs = booking.owner_id == notice.recipient_id
    where = page_url("booking", str(booking.pk)) if is_theirs else ""
    dated = Dated(booking, *dated_facts(booking), where, has_purpose=is_theirs)
    organizer = parseaddr(settings.DEFAULT_FROM_EMAIL)[1]
    zone = zone_of(preference_of(notice.recipient))
    method, text = invitation(dated, zone, organizer, notice.recipient)
    part, coded = MIMENonMultipart("text", "calendar"), Charset("utf-8")
    coded.body_encoding = BASE64  # keeps its ends of lines; libraries set the default for all
    part.set_payload(text.decode(), coded)
    part.set_param("method", method)
    part.add_header("Content-Disposition", "attachment", filename="booking.ics")
    return part
