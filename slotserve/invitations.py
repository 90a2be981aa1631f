"""Invitations: made and revoked by administrators, accepted once by whoever was invited."""

import logging
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from gateway.tokens import digest
from lanes import audit, clock
from lanes.models import Subject
from lanes.refusals import NOT_ADMINISTRATOR, Refusal
from slotserve.account_mail import INVITATION_MAIL, ask_for
from slotserve.members import about_member
from slotserve.models import Invitation, InvitationState
from wire.words import said

log = logging.getLogger(__name__)

RANDOM_BYTES = 32
USUAL, LONGEST = timedelta(days=7), timedelta(days=90)


def invite(
    *, actor: User, email: str, groups: Sequence[Group], is_administrator: bool, lifetime: timedelta
) -> tuple[Invitation, str] | Refusal:
    """An invitation and its secret, which is in this answer and never again.

    Refusals: not_administrator, bad_email, name_taken (a member has this address), bad_lifetime.
    """
    refusal = NOT_ADMINISTRATOR if not actor.is_staff else _objection(email, lifetime)
    if refusal:
        return refusal
    text = secrets.token_urlsafe(RANDOM_BYTES)
    now = clock.database_now()
    with transaction.atomic():
        made = Invitation.objects.create(
            digest=digest(text),
            email=email,
            is_administrator=is_administrator,
            created_by=actor,
            created_at=now,
            expires_at=now + lifetime,
        )
        made.groups.set(groups)
        after = audit.facts_of(made, Subject.INVITATION)
        audit.note("invitation.made", actor, _about(made), after=after)
    log.info("invitation made invitation=%s by=%s", made.pk, actor.pk)
    return made, text


def link_of(text: str, asked_at: str) -> str:
    """The address with this secret; at `asked_at` where SLOTSERVE_WEB_URL says nothing else."""
    pages = settings.SLOTSERVE_WEB_URL or asked_at
    return pages.rstrip("/") + reverse("follow-invitation", args=[text])


def send(invitation: Invitation, link: str) -> bool:
    """Have the link mailed in the inviter's language; False when nobody can be asked to now."""
    return ask_for(INVITATION_MAIL, invitation.pk, link, get_language())


def find(text: str, now: datetime) -> Invitation | Refusal:
    """The open invitation of this secret, or why there is none and what to do."""
    return _open(Invitation.objects.filter(digest=digest(text)).first(), now)


@transaction.atomic
def revoke(invitation: Invitation, *, actor: User) -> Refusal | None:
    """It opens nothing any more. Refusals: not_administrator, wrong_state (used already)."""
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    unused = Invitation.objects.filter(pk=invitation.pk, used_at=None)
    if not unused.update(revoked_at=clock.database_now()):
        return Refusal("wrong_state", _("This invitation was used: remove the member instead."))
    audit.note("invitation.revoked", actor, _about(invitation))
    return None


def accept(invitation: Invitation, *, username: str, password: str) -> User | Refusal:
    """Make the account, once.

    Refusals: those of `find`, bad_name, name_taken, bad_password.
    """
    person = User(username=username.strip(), email=invitation.email)
    refusal = _account_objection(person, password)
    if refusal:
        return refusal
    person.set_password(password)
    try:
        refusal = _make(person, invitation)
    except IntegrityError:  # at the same moment, or the address came to a member meanwhile
        words = _("Somebody has this name or address already: choose another name, or log in.")
        return Refusal("name_taken", words)
    return refusal or person


def claim(invitation: Invitation, now: datetime) -> Refusal | None:
    """Use it up; of two who come at once one is refused. Within the transaction of the account."""
    still = Invitation.objects.filter(pk=invitation.pk, used_at=None, revoked_at=None)
    if still.filter(expires_at__gt=now).update(used_at=now):
        return None
    found = _open(Invitation.objects.filter(pk=invitation.pk).first(), now)
    return found if isinstance(found, Refusal) else None


def equip(person: User, invitation: Invitation) -> None:
    """Give the new member what the invitation says, and note who used it."""
    if invitation.is_administrator:
        person.is_staff = person.is_superuser = True
        person.save(update_fields=["is_staff", "is_superuser"])
    person.groups.set(invitation.groups.all())
    Invitation.objects.filter(pk=invitation.pk).update(used_by=person)
    about, after = about_member(person), audit.facts_of(person, Subject.MEMBER)
    audit.note("member.joined", invitation.created_by, about, after=after)
    log.info("invitation used invitation=%s member=%s", invitation.pk, person.pk)


def _about(invitation: Invitation) -> audit.About:
    name = invitation.email or said("whoever has the link")
    return audit.About(Subject.INVITATION, invitation.pk, name)


def _open(found: Invitation | None, now: datetime) -> Invitation | Refusal:
    if found is None:
        words = _("This link is not whole or no longer known: copy all of it, or ask for another.")
        return Refusal("not_found", words)
    if found.state(now) is InvitationState.OPEN:
        return found
    words = {
        InvitationState.USED: _("This invitation was used already: log in with that account."),
        InvitationState.REVOKED: _("This invitation was withdrawn: ask who sent it."),
        InvitationState.EXPIRED: _("This invitation has expired: ask for another."),
    }[found.state(now)]
    return Refusal("wrong_state", words)


def _make(person: User, invitation: Invitation) -> Refusal | None:
    with transaction.atomic():
        refusal = claim(invitation, clock.database_now())
        if refusal:
            return refusal
        person.save()
        equip(person, invitation)
        if invitation.email:
            EmailAddress.objects.create(
                user=person, email=invitation.email, verified=True, primary=True
            )
    return None


def _objection(email: str, lifetime: timedelta) -> Refusal | None:
    if not timedelta() < lifetime <= LONGEST:
        return Refusal("bad_lifetime", _("An invitation is open for a day to 90 days."))
    if not email:
        return None
    try:
        Invitation._meta.get_field("email").clean(email, None)
    except ValidationError as error:
        return Refusal("bad_email", " ".join(error.messages))
    if EmailAddress.objects.filter(email__iexact=email).exists():
        return Refusal("name_taken", _("A member has this address already."))
    return None


def _account_objection(person: User, password: str) -> Refusal | None:
    try:
        person.clean_fields(exclude=["password"])
    except ValidationError as error:
        return Refusal("bad_name", " ".join(error.messages))
    if User.objects.filter(username__iexact=person.username).exists():
        return Refusal("name_taken", _("Somebody has this name already: choose another."))
    try:
        validate_password(password, person)
    except ValidationError as error:
        return Refusal("bad_password", " ".join(error.messages))
    return None
