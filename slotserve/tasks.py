"""Celery's way to mails about accounts, so that no page waits for a mail server."""

from celery import shared_task
from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from notices.preferences import in_words_of, preference_of
from slotserve.account_mail import FAREWELL_MAIL, INVITATION_MAIL
from slotserve.models import Invitation


@shared_task(name=INVITATION_MAIL)
def mail_invitation(pk: int, link: str, language: str) -> None:
    """Send the link to whom it is for, in the inviter's language; one that is gone is not sent."""
    invitation = Invitation.objects.filter(pk=pk, used_at=None, revoked_at=None).first()
    if invitation is None or not invitation.email:
        return
    with translation.override(language):
        context = {"link": link, "invitation": invitation, "language": language}
        mail = EmailMultiAlternatives(
            _("You are invited to SlotServe"),
            render_to_string("invitation_mail.txt", context),
            settings.DEFAULT_FROM_EMAIL,
            [invitation.email],
            headers={"Auto-Submitted": "auto-generated"},
        )
        mail.attach_alternative(render_to_string("invitation_mail.html", context), "text/html")
    mail.send()


@shared_task(name=FAREWELL_MAIL)
def mail_farewell(pk: int, given_back: int) -> None:
    """Tell a removed member what became of the account and the bookings."""
    person = User.objects.filter(pk=pk, is_active=False).exclude(email="").first()
    if person is None:
        return
    preference = preference_of(person)
    with in_words_of(preference):
        context = {
            "person": person,
            "language": translation.get_language(),
            "bookings": ngettext(
                "%(count)d booking was cancelled.", "%(count)d bookings were cancelled.", given_back
            )
            % {"count": given_back},
        }
        subject = _("Your account at SlotServe has ended")
        mail = EmailMultiAlternatives(
            subject,
            render_to_string("farewell_mail.txt", context),
            settings.DEFAULT_FROM_EMAIL,
            [person.email],
            headers={"Auto-Submitted": "auto-generated"},
        )
        mail.attach_alternative(render_to_string("farewell_mail.html", context), "text/html")
    mail.send()
