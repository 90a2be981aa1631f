"""How much a person and each of their tokens may ask of the gateway in a minute."""

import logging
from dataclasses import asdict, dataclass

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from gateway.models import ApiToken, MemberLimit
from lanes import audit, ticks
from lanes.models import Subject
from lanes.refusals import Refusal
from wire.words import said

log = logging.getLogger(__name__)
MOST = 2**31 - 1  # what the columns hold


@dataclass(frozen=True, slots=True)
class RateLimits:
    """Requests, and tokens of prompts and answers, in a minute; None: no limit of its own."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


NO_LIMITS = RateLimits()


def default_limits() -> RateLimits:
    """What everybody may who has no limit of their own; 0: no limit."""
    return RateLimits(settings.SLOTSERVE_REQUESTS_PER_MINUTE, settings.SLOTSERVE_TOKENS_PER_MINUTE)


def in_force(own: int | None, default: int | None) -> int | None:
    """A person's limit: their own, else everybody's; None where that is 0, no limit."""
    return (default if own is None else own) or None


def own_limits(member: User) -> RateLimits:
    """What was set for this person; None where they are as everybody."""
    return own_limits_of(getattr(member, "rate_limit", None))


def own_limits_of(row: MemberLimit | None) -> RateLimits:
    """What a row says; None: as everybody."""
    return RateLimits(row.requests_per_minute, row.tokens_per_minute) if row else NO_LIMITS


def limits_of(member: User) -> RateLimits:
    """What this person may, with all tokens together; None: without limit."""
    own, default = own_limits(member), default_limits()
    return RateLimits(
        in_force(own.requests_per_minute, default.requests_per_minute),
        in_force(own.tokens_per_minute, default.tokens_per_minute),
    )


def set_member_limits(member: User, wish: RateLimits, *, actor: User) -> MemberLimit | Refusal:
    """Set a person's limits: None for as everybody, 0 for none. For administrators."""
    if not actor.is_staff:
        words = said("Only administrators set what a member may use: ask one of them.")
        return Refusal("not_administrator", words)
    refusal = _objection(wish, least=0)
    if refusal:
        return refusal
    with transaction.atomic():
        held = MemberLimit.objects.filter(member=member).first()
        before = asdict(own_limits_of(held))
        limit, _ = MemberLimit.objects.update_or_create(member=member, defaults=asdict(wish))
        about = audit.About(Subject.MEMBER, member.pk, member.get_username())
        if before != asdict(wish):
            audit.note("member.limits", actor, about, before=before, after=asdict(wish))
        ticks.plan_soon()
    log.info("limits set member=%s by=%s %s", member.pk, actor.pk, wish)
    return limit


def set_token_limits(token: ApiToken, wish: RateLimits, *, actor: User) -> Refusal | None:
    """Set a token's limits: its owner may lower them, administrators may set any; None: none."""
    held = RateLimits(token.requests_per_minute, token.tokens_per_minute)
    refusal = token_objection(wish) or _rights_objection(token, held, wish, actor)
    if refusal:
        return refusal
    with transaction.atomic():
        seen = ApiToken.objects.filter(pk=token.pk, **asdict(held))
        if not seen.update(**asdict(wish)):
            return Refusal("wrong_state", said("Somebody has just changed this token: look again."))
        about = about_token(token, actor)
        audit.note("token.changed", actor, about, before=asdict(held), after=asdict(wish))
        ticks.plan_soon()
    token.refresh_from_db(fields=list(asdict(wish)))
    log.info("token limits set token=%s by=%s %s", token.pk, actor.pk, wish)
    return None


def about_token(token: ApiToken, actor: User) -> audit.About:
    """A token by its name, and its owner's where that is another."""
    name = token.name
    if token.owner_id != actor.pk:
        name = said("{name} of {owner}", name=name, owner=token.owner.get_username())
    return audit.About(Subject.TOKEN, token.pk, name)


def token_objection(wish: RateLimits) -> Refusal | None:
    """What is wrong with such limits of a token."""
    return _objection(wish, least=1)


def _objection(wish: RateLimits, *, least: int) -> Refusal | None:
    for number in (wish.requests_per_minute, wish.tokens_per_minute):
        if number is not None and not least <= number <= MOST:
            return Refusal(
                "bad_limit",
                said("A limit is a whole number from {least} to {most}.", least=least, most=MOST),
            )
    return None


def _rights_objection(
    token: ApiToken, held: RateLimits, wish: RateLimits, actor: User
) -> Refusal | None:
    if actor.is_staff:
        return None
    if actor.pk != token.owner_id:
        return Refusal(
            "not_yours", said("This token is someone else's: ask its owner to change it.")
        )
    pairs = (
        (held.requests_per_minute, wish.requests_per_minute),
        (held.tokens_per_minute, wish.tokens_per_minute),
    )
    if any(now is not None and (then is None or then > now) for now, then in pairs):
        words = said("You may lower a token's limits; an administrator may raise them.")
        return Refusal("not_administrator", words)
    return None
