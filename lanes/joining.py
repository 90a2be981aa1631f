"""Making a machine a host: a token by an administrator, and its exchange by that machine.

A token is 256 random bits, valid for minutes, good for one machine; of one host there is one token,
the newest. What it is exchanged for holds the passwords of database and Valkey, so it goes over TLS
or a private network alone.
"""

import hashlib
import os
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from lanes import audit, clock
from lanes.host_services import is_loopback, unfit_address
from lanes.host_watch import silent_after
from lanes.models import Host, JoinToken, Subject, TokenState
from lanes.reach import why_not_for_others
from lanes.refusals import Refusal
from lanes.validation import not_administrator, refusal_of
from lanes.version import code_version
from wire.host_settings import SAME_EVERYWHERE
from wire.sealing import read_table_keys
from wire.words import said

PREFIX = "sj_"
MINUTES, MOST_MINUTES = 60, 24 * 60
KEPT = timedelta(days=30)  # tokens of no use are shown for so long
NOT_KNOWN = said("This join token is not known: make a new one on the page of hosts.")


@dataclass(frozen=True, slots=True)
class Joined:
    """What a new host is told."""

    host: Host
    version: str  # of the code that answers
    environment: Mapping[str, str]


def create_join_token(
    *, actor: User | None, key: str, name: str, address: str, minutes: int = MINUTES
) -> tuple[JoinToken, str] | Refusal:
    """A token for a machine that will be the host `key`; its text is told this once. Earlier ones
    for the same host are revoked.

    Refusals: not_administrator, invalid, host_lives, host_joining, not_for_others.
    """
    if actor is not None and not actor.is_staff:
        return not_administrator()
    if not 1 <= minutes <= MOST_MINUTES:
        return Refusal(
            "invalid",
            said("A join token lasts from 1 to {most} minutes.", most=MOST_MINUTES),
        )
    name = name.strip() or key
    refusal = unfit_address(address) or _unfit_host(key, name) or why_not_for_others(address)
    return refusal or _create(actor, key, name, address, timedelta(minutes=minutes))


@transaction.atomic
def _create(
    actor: User | None, key: str, name: str, address: str, lasts: timedelta
) -> tuple[JoinToken, str] | Refusal:
    now, text = clock.database_now(), PREFIX + secrets.token_urlsafe(32)
    tokens = _locked(key)
    refusal = _unfit_host(key, name) or _why_not_yet(tokens, now)
    if refusal:
        return refusal
    waiting = [token.pk for token in tokens if token.state(now) == TokenState.WAITING]
    JoinToken.objects.filter(pk__in=waiting).update(revoked_at=now)
    JoinToken.objects.filter(expires_at__lt=now - KEPT).delete()
    said = {"key": key, "name": name, "address": address, "made_at": now, "made_by": actor}
    made = JoinToken.objects.create(digest=_digest(text), expires_at=now + lasts, **said)
    about = audit.About(Subject.JOIN_TOKEN, made.pk, key)
    after = audit.facts_of(made, Subject.JOIN_TOKEN)
    audit.note("join_token.made", actor, about, after=after)
    return made, text


@transaction.atomic
def join(text: str, machine: str = "", addresses: Collection[str] = ()) -> Joined | Refusal:
    """Exchange a token: the host's row, and what its worker needs.

    A token is one machine's. Until its worker has looked for the first time, the machine that gave
    the same secret `machine` may ask again: the answer may have been lost on the way.
    `addresses` are its own: without the host's the token is not used. None: it does not say.
    Refusals: bad_join_token, not_its_address, host_lives, host_joining, not_for_others.
    """
    now = clock.database_now()
    asked = JoinToken.objects.filter(digest=_digest(text)).first()
    if asked is None:
        return Refusal("bad_join_token", NOT_KNOWN)
    tokens = _locked(asked.key)
    token = next((each for each in tokens if each.pk == asked.pk), None)
    if token is None:  # deleted meanwhile
        return Refusal("bad_join_token", NOT_KNOWN)
    host = Host.objects.filter(key=token.key).first()
    again = bool(machine) and token.machine == _digest(machine) and is_joining(token, host, now)
    refusal = (
        _spoilt(token, tokens, now, again=again)
        or _not_its_address(token, addresses)
        or why_not_for_others(token.address)
        or _unfit_host(token.key, token.name)
        or (None if again else _why_not_yet(tokens, now))
    )
    if refusal:
        return refusal
    token.used_at, token.machine = now, _digest(machine) if machine else ""
    token.save(update_fields=["used_at", "machine"])
    host, _ = Host.objects.update_or_create(
        key=token.key, defaults={"name": token.name, "address": token.address}
    )
    if not again:
        audit.note("host.joined", token.made_by, audit.About(Subject.HOST, host.pk, host.key))
    return Joined(host, code_version(), environment_of(host))


@transaction.atomic
def revoke_join_token(pk: int, *, actor: User | None) -> JoinToken | Refusal:
    """End a token. One that a machine has used lets another join as that host; what the machine was
    told it keeps.

    Refusals: not_administrator, not_found, wrong_state.
    """
    if actor is not None and not actor.is_staff:
        return not_administrator()
    now = clock.database_now()
    token = JoinToken.objects.filter(pk=pk).first()
    if token is None:
        return Refusal("not_found", said("There is no such join token."))
    living = JoinToken.objects.filter(pk=pk, revoked_at=None, expires_at__gt=now)
    if not living.update(revoked_at=now):
        return Refusal("wrong_state", said("This join token is of no use any more already."))
    token.revoked_at = now
    audit.note("join_token.revoked", actor, audit.About(Subject.JOIN_TOKEN, pk, token.key))
    return token


def _locked(key: str) -> list[JoinToken]:
    """All tokens for this host, so that one decides at a time."""
    return list(JoinToken.objects.select_for_update().filter(key=key).order_by("pk"))


def _spoilt(
    token: JoinToken, tokens: list[JoinToken], now: datetime, *, again: bool
) -> Refusal | None:
    """Why this token lets nobody in."""
    words = {
        TokenState.USED: "" if again else said("has been used"),
        TokenState.REVOKED: said("has been revoked, or a newer one was made for the same host"),
        TokenState.EXPIRED: said("has expired"),
        TokenState.WAITING: said("is not the newest for its host") if token != tokens[-1] else "",
    }[token.state(now)]
    if words:
        return Refusal(
            "bad_join_token", said("This join token {words}: make a new one.", words=words)
        )
    if token.made_by is not None and not (token.made_by.is_staff and token.made_by.is_active):
        return Refusal(
            "bad_join_token", said("Who made this join token is no administrator any more.")
        )
    return None


def _not_its_address(token: JoinToken, addresses: Collection[str]) -> Refusal | None:
    if not addresses or is_loopback(token.address) or token.address in addresses:
        return None
    own = ", ".join(sorted(each for each in addresses if not is_loopback(each))) or said("none")
    words = said(
        "{address}, for which this join token was made, is no address of this "
        "machine (its own: {own}): make a token with the right one. This one has "
        "not been used.",
        address=token.address,
        own=own,
    )
    return Refusal("not_its_address", words)


def _why_not_yet(tokens: list[JoinToken], now: datetime) -> Refusal | None:
    """Two machines must not be one host: of one that has just joined, the first look counts."""
    for token in tokens:
        host = Host.objects.filter(key=token.key).first()
        if is_joining(token, host, now):
            words = said(
                "A machine has just joined as {host}, and its worker has not looked yet. "
                "Start that or, to let another machine join, revoke the token that it used.",
                host=token.key,
            )
            return Refusal("host_joining", words)
    return None


def is_joining(token: JoinToken, host: Host | None, now: datetime) -> bool:
    """Whether a machine has used it whose worker, the host's now, has not looked since."""
    if host is None or token.used_at is None:
        return False
    is_used = token.state(now) == TokenState.USED and now < token.expires_at
    return is_used and (host.seen_at is None or host.seen_at <= token.used_at)


def environment_of(host: Host) -> dict[str, str]:
    """The settings of the host's worker. Django's secret key is not among them."""
    said = {name: os.environ[name] for name in SAME_EVERYWHERE if os.environ.get(name)}
    return {
        "DATABASE_URL": settings.SLOTSERVE_HOSTS_DATABASE_URL,
        "REDIS_URL": settings.SLOTSERVE_HOSTS_REDIS_URL,
        "SLOTSERVE_TABLE_KEYS": ",".join(read_table_keys()),
        "SLOTSERVE_HOST_KEY": host.key,
        **said,
    }


def _unfit_host(key: str, name: str) -> Refusal | None:
    """A key that none can have, or whose machine is there: two workers must not share one."""
    if not key:
        return Refusal(
            "invalid", said("Give the host a key, such as gpu1: small letters and digits.")
        )
    present = Host.objects.filter(key=key).first()
    if present is None:
        return refusal_of(Host(key=key, name=name))
    if present.seen_at and present.seen_at > clock.database_now() - silent_after():
        words = said(
            "The host {key} is there: stop its worker first, or take another key.", key=key
        )
        return Refusal("host_lives", words)
    return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
