"""Whether other machines reach this installation's database and Valkey, and may."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from lanes.host_services import is_loopback
from lanes.refusals import Refusal
from wire.words import said, together

CONTAINERS = frozenset({"postgres", "valkey"})  # only containers know them
# What hosts use, what this machine uses, and which of its forms go over a network.
PLACES = (
    ("SLOTSERVE_HOSTS_DATABASE_URL", "DATABASE_URL", frozenset({"postgres", "postgresql"})),
    ("SLOTSERVE_HOSTS_REDIS_URL", "REDIS_URL", frozenset({"redis", "rediss"})),
)


def why_not_for_others(address: str = "") -> Refusal | None:
    """Why a machine could not reach database and Valkey, or must not; `address` is the machine's.

    One with a loopback address is this very machine.
    """
    is_here = is_loopback(address)
    found = {
        name: said("{setting} {what}", setting=own, what=words)
        for name, own, schemes in PLACES
        if (words := _why_not(getattr(settings, name), schemes, is_here=is_here))
    }
    if not found:
        return None
    advice = said(
        "Set {settings} to what other machines use: an address of a private network or a full "
        "name, with a password; and give each host its own address there",
        settings=said("{0} and {1}", *found) if len(found) > 1 else "".join(found),
    )
    return Refusal(
        "not_for_others",
        said(
            "No machine can join: {reasons}. {advice}.",
            reasons=together("; ", found.values()),
            advice=advice,
        ),
    )


def may_be_unknown_elsewhere() -> str:
    """Names without a dot, which search domains make known, or not; empty: there are none."""
    urls = [urlsplit(getattr(settings, name)) for name, *rest in PLACES]
    names = {url.hostname for url in urls if url.hostname and not _is_full(url.hostname)}
    found = ", ".join(sorted(name for name in names if not is_loopback(name)))
    words = _("%(names)s may be known here alone: other machines must know it, too.")
    return words % {"names": found} if found else ""


def open_to_all(url: str) -> str:
    """Where Valkey answers without a password though others reach it; empty: it does not."""
    parts = urlsplit(url)
    place = parts.hostname or ""
    is_network = parts.scheme in {"redis", "rediss"}
    return place if is_network and not parts.password and not is_loopback(place) else ""


def _why_not(url: str, schemes: frozenset[str], *, is_here: bool) -> str:
    parts = urlsplit(url)
    if parts.scheme not in schemes:
        return said("is a file or a socket of this machine (bin/up's own are)")
    if not parts.password:
        return said("has no password")
    host = parts.hostname or "localhost"
    if is_loopback(host):
        return "" if is_here else said("names this machine's loopback")
    return said("names {host}, which is known here alone", host=host) if host in CONTAINERS else ""


def _is_full(host: str) -> bool:
    """Whether it is an address or a name that needs no search domain."""
    try:
        ip_address(host)
    except ValueError:
        return "." in host.strip(".")
    return True
