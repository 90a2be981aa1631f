"""Members: changed and removed by administrators. Pages, REST and commands call these.

At least one administrator who may log in always stays, and nobody removes herself.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from bookings import services, waitlist
from bookings.models import Booking
from bookings.states import Status
from gateway.models import ApiToken
from lanes import audit, clock, ticks
from lanes.models import Subject
from lanes.refusals import NOT_ADMINISTRATOR, Refusal
from slotserve.account_mail import FAREWELL_MAIL, ask_for

log = logging.getLogger(__name__)

ATTEMPTS = 3  # at giving one booking back, when others change it at the same moment


@dataclass(frozen=True, slots=True)
class Member:
    """What administrators may change of a person."""

    username: str
    email: str
    first_name: str
    last_name: str
    is_administrator: bool
    is_active: bool


@dataclass(frozen=True, slots=True)
class Removed:
    """What became of a removed member's things."""

    given_back: int  # bookings
    kept: int  # bookings that go on: the one in progress, or those that could not be given back
    revoked: int  # tokens


def save_member(
    person: User, wish: Member, groups: Sequence[Group], *, actor: User
) -> User | Refusal:
    """Change a member. An address that an administrator enters counts as verified.

    Refusals: not_administrator, not_yourself, last_administrator, bad_name, bad_email, name_taken.
    """
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    try:
        saved = _save(person, wish, groups, actor)
    except IntegrityError:  # somebody took it at the same moment
        return Refusal("name_taken", _("Another member has this name or address already."))
    if isinstance(saved, User):
        log.info("member saved member=%s by=%s", saved.pk, actor.pk)
    return saved


def remove_member(person: User, *, actor: User, releases: bool) -> Removed | Refusal:
    """Let somebody in no more: ends sessions and waits, revokes tokens, cancels what is booked.

    `releases` ends the booking in progress as well. History stays, and so does the row. First the
    person is shut out, so that nothing new is booked; safe to repeat when it stopped half-way.
    Refusals: not_administrator, not_yourself, last_administrator.
    """
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    with transaction.atomic():
        held, administrators = _lock(person)
        refusal = _removal_objection(person, administrators, actor)
        if refusal:
            return refusal
        if held.is_active:
            audit.note("member.removed", actor, about_member(held))
        revoked = _shut_out(held)
        waitlist.leave_all(held)
        ticks.plan_soon()
    given_back, kept = _give_back(person, actor, releases=releases)
    if person.email:
        ask_for(FAREWELL_MAIL, person.pk, given_back)
    log.info("member removed member=%s by=%s bookings=%s", person.pk, actor.pk, given_back)
    return Removed(given_back, kept, revoked)


def about_member(person: User) -> audit.About:
    """A member, for the audit trail."""
    return audit.About(Subject.MEMBER, person.pk, person.get_username())


def _save(person: User, wish: Member, groups: Sequence[Group], actor: User) -> User | Refusal:
    with transaction.atomic():
        held, administrators = _lock(person)
        before = audit.facts_of(held, Subject.MEMBER)
        refusal = _power_objection(held, wish, administrators, actor) or _take(held, wish)
        if refusal:
            return refusal
        held.save()
        held.groups.set(groups)
        _set_address(held)
        after = audit.facts_of(held, Subject.MEMBER)
        audit.note("member.changed", actor, about_member(held), before=before, after=after)
        ticks.plan_soon()
    return held


def _lock(person: User) -> tuple[User, set[int]]:
    """The person as it is now, and the administrators who may log in: two who remove each other
    come one after the other. All by primary key, as bookings lock members."""
    concerned = Q(is_staff=True, is_active=True) | Q(pk=person.pk)
    rows = User.objects.select_for_update(no_key=True).filter(concerned).order_by("pk")
    held = {row.pk: row for row in rows}
    administrators = {pk for pk, row in held.items() if row.is_staff and row.is_active}
    return held[person.pk], administrators


def _removal_objection(person: User, administrators: set[int], actor: User) -> Refusal | None:
    if person.pk == actor.pk:
        words = _("You cannot remove yourself: another administrator can.")
        return Refusal("not_yourself", words)
    return _last_objection() if administrators == {person.pk} else None


def _power_objection(
    held: User, wish: Member, administrators: set[int], actor: User
) -> Refusal | None:
    if wish.is_administrator and wish.is_active:
        return None
    if held.pk == actor.pk:
        words = _("You cannot take your own rights away: another administrator can.")
        return Refusal("not_yourself", words)
    return _last_objection() if administrators == {held.pk} else None


def _last_objection() -> Refusal:
    words = _("This is the last administrator: make another one first.")
    return Refusal("last_administrator", words)


def _take(held: User, wish: Member) -> Refusal | None:
    """Write the wish into the row; what cannot be is told."""
    held.username, held.email = wish.username, wish.email
    held.first_name, held.last_name = wish.first_name, wish.last_name
    held.is_active = wish.is_active
    held.is_staff = held.is_superuser = wish.is_administrator
    try:
        held.clean_fields(exclude=["password"])
    except ValidationError as error:
        is_email = "email" in error.message_dict
        words = " ".join(error.messages)
        return Refusal("bad_email" if is_email else "bad_name", words)
    if User.objects.filter(username__iexact=wish.username).exclude(pk=held.pk).exists():
        return Refusal("name_taken", _("Another member has this name already."))
    known = EmailAddress.objects.filter(email__iexact=wish.email).exclude(user=held)
    if wish.email and known.exists():
        return Refusal("name_taken", _("Another member has this address already."))
    return None


def _set_address(held: User) -> None:
    """The address by which a single sign-on knows the member."""
    others = EmailAddress.objects.filter(user=held).exclude(email__iexact=held.email)
    others.filter(primary=True).delete()
    if held.email:
        values = {"email": held.email, "verified": True, "primary": True}
        EmailAddress.objects.update_or_create(
            user=held, email__iexact=held.email, defaults=values, create_defaults=values
        )


def _shut_out(held: User) -> int:
    """No log-in, session, token or second factor is left; the number of tokens revoked."""
    held.is_active = held.is_staff = held.is_superuser = False
    held.set_unusable_password()  # which ends the sessions, also should the person come back
    held.save()
    for kind in (EmailAddress, SocialAccount, Authenticator):
        kind.objects.filter(user=held).delete()
    living = ApiToken.objects.filter(owner=held, revoked_at=None)
    return living.update(revoked_at=clock.database_now())


def _give_back(person: User, actor: User, *, releases: bool) -> tuple[int, int]:
    now = clock.database_now()
    given_back = kept = 0
    for booking in Booking.objects.filter(owner=person).current(now):
        is_running = booking.status(now) is Status.IN_PROGRESS
        if (releases or not is_running) and _is_given_back(booking, actor):
            given_back += 1
        else:
            kept += 1
    return given_back, kept


def _is_given_back(booking: Booking, actor: User) -> bool:
    for _attempt in range(ATTEMPTS):
        answer = services.release(booking, actor=actor)
        if not isinstance(answer, Refusal):
            return True
        if answer.code != "busy":
            log.warning("booking of a removed member stays booking=%s", booking.pk)
            return False
    return False
