"""Making a machine a host: a token by an administrator, and its exchange by that machine.

A token is 256 random bits, valid for minutes, good for one machine. What it is exchanged for holds
the passwords of database and Valkey, so it goes over TLS or a private network alone.
"""

import hashlib
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from lanes import clock
from lanes.host_services import is_loopback, unfit_address
from lanes.host_watch import silent_after
from lanes.models import Host, JoinToken
from lanes.refusals import Refusal
from lanes.validation import not_administrator, refusal_of
from lanes.version import code_version
from wire.sealing import read_table_keys

PREFIX = "sj_"
MINUTES, MOST_MINUTES = 60, 24 * 60
SAME_EVERYWHERE = (
    "SLOTSERVE_TICK_SECONDS",
    "SLOTSERVE_HOST_SILENT_SECONDS",
    "SLOTSERVE_BUFFER_SECONDS",
    "SLOTSERVE_MIN_PRELOAD_SECONDS",
    "SLOTSERVE_DRAIN_SECONDS",
    "SLOTSERVE_STOP_TIMEOUT_SECONDS",
    "SLOTSERVE_LOAD_TIMEOUT_SECONDS",
    "SLOTSERVE_DISK_READ_MBPS",
    "SLOTSERVE_TIME_ZONE",
)
NOT_KNOWN = "This join token is not known: make a new one on the page of hosts."


@dataclass(frozen=True, slots=True)
class Joined:
    """What a new host is told."""

    host: Host
    version: str  # of the code that answers
    environment: Mapping[str, str]


def create_join_token(
    *, actor: User | None, key: str, name: str, address: str, minutes: int = MINUTES
) -> tuple[JoinToken, str] | Refusal:
    """A token for a machine that will be the host `key`; its text is told this once.

    Refusals: not_administrator, invalid, host_lives, not_for_others.
    """
    if actor is not None and not actor.is_staff:
        return not_administrator()
    if not 1 <= minutes <= MOST_MINUTES:
        return Refusal("invalid", f"A join token lasts from 1 to {MOST_MINUTES} minutes.")
    name = name.strip() or key
    refusal = unfit_address(address) or why_not_for_others() or _unfit_host(key, name)
    if refusal:
        return refusal
    now, text = clock.database_now(), PREFIX + secrets.token_urlsafe(32)
    made = JoinToken.objects.create(
        digest=_digest(text),
        key=key,
        name=name,
        address=address,
        made_at=now,
        made_by=actor,
        expires_at=now + timedelta(minutes=minutes),
    )
    return made, text


@transaction.atomic
def join(text: str) -> Joined | Refusal:
    """Exchange a token: the host's row, and what its worker needs. A token works once.

    Refusals: bad_join_token, host_lives, not_for_others.
    """
    now = clock.database_now()
    token = JoinToken.objects.select_for_update().filter(digest=_digest(text)).first()
    if token is None:
        return Refusal("bad_join_token", NOT_KNOWN)
    if token.used_at is not None:
        return Refusal("bad_join_token", "This join token has been used: make a new one.")
    if token.expires_at <= now:
        return Refusal("bad_join_token", "This join token has expired: make a new one.")
    if token.made_by is not None and not (token.made_by.is_staff and token.made_by.is_active):
        return Refusal("bad_join_token", "Who made this join token is no administrator any more.")
    refusal = why_not_for_others() or _unfit_host(token.key, token.name)
    if refusal:
        return refusal
    token.used_at = now
    token.save(update_fields=["used_at"])
    host, _ = Host.objects.update_or_create(
        key=token.key, defaults={"name": token.name, "address": token.address}
    )
    return Joined(host, code_version(), environment_of(host))


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


def why_not_for_others() -> Refusal | None:
    """Why other machines could not reach this installation's database and Valkey, or must not."""
    for name, own, schemes in (
        ("SLOTSERVE_HOSTS_DATABASE_URL", "DATABASE_URL", {"postgres", "postgresql"}),
        ("SLOTSERVE_HOSTS_REDIS_URL", "REDIS_URL", {"redis", "rediss"}),
    ):
        words = _why_not_for_others(getattr(settings, name), schemes)
        if words:
            advice = f"Set {own}, or {name} for what hosts use, to an address on a private network"
            return Refusal("not_for_others", f"No machine can join: {own} {words}. {advice}.")
    return None


def _why_not_for_others(url: str, schemes: set[str]) -> str:
    parts = urlsplit(url)
    if parts.scheme not in schemes:
        return "is a file or a socket of this machine (bin/up's own are)"
    if not parts.password:
        return "has no password"
    host = parts.hostname or "localhost"
    return "names this machine's loopback" if is_loopback(host) else ""


def _unfit_host(key: str, name: str) -> Refusal | None:
    """A key that none can have, or whose machine is there: two workers must not share one."""
    if not key:
        return Refusal("invalid", "Give the host a key, such as gpu1: small letters and digits.")
    present = Host.objects.filter(key=key).first()
    if present is None:
        return refusal_of(Host(key=key, name=name))
    if present.seen_at and present.seen_at > clock.database_now() - silent_after():
        words = f"The host {key} is there: stop its worker first, or take another key."
        return Refusal("host_lives", words)
    return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
