"""Checks of what callers depend on: the route table, the gateways, the records of usage."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from gateway.edge.table import Head
from slotserve.selfcheck.facts import Facts, ValkeyFacts
from slotserve.selfcheck.findings import Finding, Named
from wire.edges import SILENT_AFTER_SECONDS
from wire.usage import STREAM_LENGTH
from wire.words import marked

TABLE = Named("table", marked("Route table"))
EDGES = Named("gateways", marked("Gateways"))
USAGE = Named("usage", marked("Usage records"))
OLD_TABLE_SECONDS = 60.0  # beats renew it every few seconds


def table(facts: Facts) -> Finding:
    """There is one, signed by our keys, and it was confirmed lately."""
    if isinstance(facts.valkey, str):
        return TABLE.unknown(_("Not looked at: Valkey does not answer."))
    head = facts.valkey.head
    if head is None:
        return TABLE.trouble(
            _("No route table has been published: the gateway serves nobody."),
            _("See to beat and the plan worker, and set SLOTSERVE_TABLE_KEYS there."),
        )
    if isinstance(head, str):
        advice = _("Use the same SLOTSERVE_TABLE_KEYS and the same release everywhere.")
        return TABLE.trouble(_("The route table cannot be read: %(why)s.") % {"why": head}, advice)
    return _age(head, facts.valkey)


def _age(head: Head, valkey: ValkeyFacts) -> Finding:
    age = max(0.0, valkey.now_ms / 1000 + head.clock_offset - head.confirmed_at)
    if age <= OLD_TABLE_SECONDS:
        return TABLE.ok(_("The route table was confirmed %(seconds).0f s ago.") % {"seconds": age})
    words = _(
        "The route table was last confirmed %(seconds).0f s ago; it should be a few seconds."
    ) % {"seconds": age}
    return TABLE.trouble(words, _("See to beat and the plan worker: they renew it at each tick."))


def edges(facts: Facts) -> Finding:
    """At least one gateway lives; each that has gone without a word is named."""
    if isinstance(facts.valkey, str):
        return EDGES.unknown(_("Not looked at: Valkey does not answer."))
    oldest = facts.valkey.now_ms - SILENT_AFTER_SECONDS * 1000
    present = [edge for edge in facts.valkey.edges if not edge.goodbye]
    living = sorted(edge.edge_id for edge in present if edge.at_ms >= oldest)
    silent = sorted(edge.edge_id for edge in present if edge.at_ms < oldest)
    if not living:
        return EDGES.trouble(
            _("No gateway is running: nobody can call a model."),
            _("Start `python -m gateway.edge`, and let it reach Valkey."),
        )
    if silent:
        advice = _("Start them again, or forget them: hosts do so once their connections are gone.")
        return EDGES.warning(
            _("Gateways gone without a word: %(names)s.") % {"names": ", ".join(silent)}, advice
        )
    return EDGES.ok(_("Gateways running: %(names)s.") % {"names": ", ".join(living)})


def usage(facts: Facts) -> Finding:
    """Records are taken in about as fast as they come."""
    if isinstance(facts.valkey, str):
        return USAGE.unknown(_("Not looked at: Valkey does not answer."))
    waiting, dropped = facts.valkey.usage_waiting, facts.valkey.usage_dropped
    if waiting > STREAM_LENGTH // 2:
        return USAGE.warning(
            _(
                "%(waiting)s usage records wait in Valkey; at %(stream_length)s gateways "
                "keep the rest in files."
            )
            % {"waiting": waiting, "stream_length": STREAM_LENGTH},
            _("See to the plan worker and the database: nobody takes the records in."),
        )
    words = ngettext(
        "%(count)s usage record waits to be taken in.",
        "%(count)s usage records wait to be taken in.",
        waiting,
    ) % {"count": waiting}
    lost = _("Ever dropped as unreadable: %(count)s.") % {"count": dropped} if dropped else ""
    return USAGE.ok(f"{words} {lost}".strip())
