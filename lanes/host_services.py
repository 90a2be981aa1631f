"""What administrators say of hosts: a name for people, and the address where servers listen."""

from ipaddress import ip_address

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from lanes import audit, ticks
from lanes.models import Host, Subject
from lanes.refusals import Refusal
from lanes.validation import not_administrator, refusal_of
from wire.words import said


@transaction.atomic
def save_host(
    host: Host, *, actor: User | None, name: str | None = None, address: str | None = None
) -> Host | Refusal:
    """Change a host; what is left out stays. Servers that run keep their address until they stop.

    Refusals: not_administrator, invalid, not_found.
    """
    if actor is not None and not actor.is_staff:
        return not_administrator()
    row = Host.objects.select_for_update().filter(pk=host.pk).first()
    if row is None:
        return Refusal("not_found", said("This host has been deleted meanwhile."))
    before = audit.facts_of(row, Subject.HOST)
    row.name = (name or row.name).strip()
    row.address = (address or row.address).strip()
    refusal = unfit_address(row.address) or refusal_of(row)
    if refusal:
        return refusal
    row.save(update_fields=["name", "address"])
    about = audit.About(Subject.HOST, row.pk, row.name)
    after = audit.facts_of(row, Subject.HOST)
    audit.note("host.changed", actor, about, before=before, after=after)
    ticks.plan_soon()
    return row


def unfit_address(text: str) -> Refusal | None:
    """Why model servers cannot listen there: they take one address, which edges reach."""
    try:
        address = ip_address(text)
    except ValueError:
        words = said(
            "{text!r} is no IP address: give one, such as 127.0.0.1 or 10.0.0.5.", text=text
        )
        return Refusal("invalid", words)
    if address.is_unspecified or address.is_multicast or text in {"255.255.255.255"}:
        words = said(
            "{text} is no address of one machine: give the private one that gateways reach.",
            text=text,
        )
        return Refusal("invalid", words)
    if getattr(address, "scope_id", None):
        return Refusal(
            "invalid", said("{text} names a network card: give an address without '%'.", text=text)
        )
    return None


def note_on(address: str) -> str:
    """What to know before model servers listen there; empty: nothing."""
    try:
        is_public = ip_address(address).is_global
    except ValueError:
        return ""
    words = _(
        "%(address)s is a public address: whoever reaches it reaches the ports of model servers. "
        "Give one of a private network, or let a firewall admit the gateways alone."
    )
    return words % {"address": address} if is_public else ""


def is_loopback(address: str) -> bool:
    """Whether nobody but this machine reaches it."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
