"""API tokens: 256 random bits, shown once, kept as SHA-256."""

import hashlib
import logging
import secrets
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from bookings.models import Booking
from gateway.limits import NO_LIMITS, RateLimits, about_token, token_objection
from gateway.models import ApiToken, Scope
from lanes import audit, clock, ticks
from lanes.models import Lane, Subject
from lanes.refusals import Refusal
from wire.words import said

log = logging.getLogger(__name__)

START = "ss_"
RANDOM_BYTES = 32
PREFIX_CHARACTERS = 10
LONGEST_NAME = 100
ADMIN_OF_SOME = Refusal(
    "unknown_scope", said("A token for some lanes alone cannot have the scope admin.")
)
DEFAULT_SCOPES = (Scope.INFERENCE, Scope.BOOKINGS, Scope.READ)
TOUCH_EVERY = timedelta(minutes=1)


def create_token(  # noqa: PLR0913 - what is wished, all by name
    *,
    owner: User,
    name: str,
    scopes: Sequence[str],
    lanes: Sequence[Lane],
    expires_at: datetime | None,
    rate_limits: RateLimits = NO_LIMITS,
    booking: Booking | None = None,
    session: str = "",
) -> tuple[ApiToken, str] | Refusal:
    """Make a token for its owner; the text is in this answer and never again. No lanes: all.

    With a booking its lane and times are all it is for (`slot_tokens.make_slot_token` checks). With
    a session it is a page's own (`browser_tokens`), which no list and no trail shows.
    """
    now = clock.database_now()
    name = name.strip()
    refusal = _objection(owner, name, expires_at, now) or _scope_objection(scopes, lanes)
    refusal = refusal or token_objection(rate_limits)
    if refusal:
        return refusal
    text = START + secrets.token_urlsafe(RANDOM_BYTES)
    token = ApiToken(
        owner=owner,
        name=name,
        prefix=text[:PREFIX_CHARACTERS],
        digest=digest(text),
        scopes=sorted(set(map(str, scopes))),
        created_at=now,
        expires_at=expires_at,
        is_limited=bool(lanes) or booking is not None,
        booking=booking,
        session=session,
        **asdict(rate_limits),
    )
    refusal = _write(token, lanes)
    if refusal:
        return refusal
    log.info("token made token=%s owner=%s scopes=%s", token.pk, owner.pk, token.scopes)
    return token, text


@transaction.atomic
def _write(token: ApiToken, lanes: Sequence[Lane]) -> Refusal | None:
    """The owner's row is locked, so that whoever removes them now finds the token."""
    row = User.objects.select_for_update(no_key=True).filter(pk=token.owner.pk, is_active=True)
    if not row.exists():
        return _inactive(token.owner)
    token.save()
    token.lanes.set(lanes)
    if not token.session:
        after = audit.facts_of(token, Subject.TOKEN)
        audit.note("token.made", token.owner, about_token(token, token.owner), after=after)
    ticks.plan_soon()
    return None


def revoke(token: ApiToken, *, actor: User) -> Refusal | None:
    """End a token for good: its owner may, and administrators. Twice is as good as once."""
    if actor.pk != token.owner_id and not actor.is_staff:
        return Refusal(
            "not_yours", said("This token is someone else's: ask its owner to revoke it.")
        )
    with transaction.atomic():
        open_tokens = ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True)
        is_first = open_tokens.update(revoked_at=clock.database_now())
        if is_first:
            audit.note("token.revoked", actor, about_token(token, actor))
        ticks.plan_soon()
    if is_first:
        log.info("token revoked token=%s owner=%s by=%s", token.pk, token.owner_id, actor.pk)
    token.refresh_from_db(fields=["revoked_at"])
    return None


def find(text: str, now: datetime) -> ApiToken | None:
    """The usable token of this text, with its owner; found by digest, so timing tells nothing."""
    usable = ApiToken.objects.usable(now).select_related("owner")
    begun = Q(booking=None) | Q(booking__start__lte=now)
    return usable.filter(begun, digest=digest(text)).first()


def touch(token: ApiToken, now: datetime) -> None:
    """Note that the token is in use, at most once a minute."""
    if token.last_used_at is not None and now - token.last_used_at < TOUCH_EVERY:
        return
    note_use({token.pk: now})


def worth_noting(used_at: dict[int, datetime]) -> dict[int, datetime]:
    """Those of the uses that `note_use` would note, found without writing."""
    noted = ApiToken.objects.filter(pk__in=used_at).values_list("pk", "last_used_at")
    return {
        pk: used_at[pk] for pk, last in noted if last is None or used_at[pk] - last >= TOUCH_EVERY
    }


def note_use(used_at: dict[int, datetime]) -> None:
    """Move the last use of some tokens forward, where the noted one is a minute old."""
    for pk, at in used_at.items():
        is_old = Q(last_used_at__isnull=True) | Q(last_used_at__lte=at - TOUCH_EVERY)
        ApiToken.objects.filter(is_old, pk=pk).update(last_used_at=at)


def digest(text: str) -> str:
    """SHA-256 of a token's text, hex: enough for a secret of 256 random bits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _inactive(owner: User) -> Refusal:
    words = said("{owner} may not log in: activate them first.", owner=owner.username)
    return Refusal("owner_inactive", words)


def _objection(
    owner: User, name: str, expires_at: datetime | None, now: datetime
) -> Refusal | None:
    if not owner.is_active:
        return _inactive(owner)
    if not name or len(name) > LONGEST_NAME:
        return Refusal(
            "bad_name",
            said(
                "Give the token a name of 1 to {most} characters.",
                most=LONGEST_NAME,
            ),
        )
    if expires_at is not None and expires_at.tzinfo is None:
        return Refusal(
            "naive_time", said("Give the expiry with its time zone, such as …T12:00:00Z.")
        )
    if expires_at is not None and expires_at <= now:
        return Refusal("in_the_past", said("The expiry must lie in the future."))
    return None


def _scope_objection(scopes: Sequence[str], lanes: Sequence[Lane]) -> Refusal | None:
    unknown = sorted(set(map(str, scopes)) - set(Scope.values))
    if unknown or not scopes:
        wrong = (
            said("{names} is no scope", names=", ".join(unknown))
            if unknown
            else said("A token needs a scope")
        )
        return Refusal(
            "unknown_scope",
            said("{wrong}: choose from {names}.", wrong=wrong, names=", ".join(Scope.values)),
        )
    # One for some lanes could make itself a token for all of them.
    return ADMIN_OF_SOME if lanes and Scope.ADMIN in scopes else None
