"""Checks of what callers depend on: the route table, the gateways, the records of usage."""

from gateway.edge.table import Head
from slotserve.selfcheck.facts import Facts, ValkeyFacts
from slotserve.selfcheck.findings import Finding, Named
from wire.edges import SILENT_AFTER_SECONDS
from wire.usage import STREAM_LENGTH

TABLE = Named("table", "Route table")
EDGES = Named("gateways", "Gateways")
USAGE = Named("usage", "Usage records")
OLD_TABLE_SECONDS = 60.0  # beats renew it every few seconds
_NOT_ASKED = "Not looked at: Valkey does not answer."


def table(facts: Facts) -> Finding:
    """There is one, signed by our keys, and it was confirmed lately."""
    if isinstance(facts.valkey, str):
        return TABLE.unknown(_NOT_ASKED)
    head = facts.valkey.head
    if head is None:
        return TABLE.trouble(
            "No route table has been published: the gateway serves nobody.",
            "See to beat and the plan worker, and set SLOTSERVE_TABLE_KEYS there.",
        )
    if isinstance(head, str):
        advice = "Use the same SLOTSERVE_TABLE_KEYS and the same release everywhere."
        return TABLE.trouble(f"The route table cannot be read: {head}.", advice)
    return _age(head, facts.valkey)


def _age(head: Head, valkey: ValkeyFacts) -> Finding:
    age = max(0.0, valkey.now_ms / 1000 + head.clock_offset - head.confirmed_at)
    if age <= OLD_TABLE_SECONDS:
        return TABLE.ok(f"The route table was confirmed {age:.0f} s ago.")
    words = f"The route table was last confirmed {age:.0f} s ago; it should be a few seconds."
    return TABLE.trouble(words, "See to beat and the plan worker: they renew it at each tick.")


def edges(facts: Facts) -> Finding:
    """At least one gateway lives; each that has gone without a word is named."""
    if isinstance(facts.valkey, str):
        return EDGES.unknown(_NOT_ASKED)
    oldest = facts.valkey.now_ms - SILENT_AFTER_SECONDS * 1000
    present = [edge for edge in facts.valkey.edges if not edge.goodbye]
    living = sorted(edge.edge_id for edge in present if edge.at_ms >= oldest)
    silent = sorted(edge.edge_id for edge in present if edge.at_ms < oldest)
    if not living:
        return EDGES.trouble(
            "No gateway is running: nobody can call a model.",
            "Start `python -m gateway.edge`, and let it reach Valkey.",
        )
    if silent:
        advice = "Start them again, or forget them: hosts do so once their connections are gone."
        return EDGES.warning(f"Gateways gone without a word: {', '.join(silent)}.", advice)
    return EDGES.ok(f"Gateways running: {', '.join(living)}.")


def usage(facts: Facts) -> Finding:
    """Records are taken in about as fast as they come."""
    if isinstance(facts.valkey, str):
        return USAGE.unknown(_NOT_ASKED)
    waiting, dropped = facts.valkey.usage_waiting, facts.valkey.usage_dropped
    if waiting > STREAM_LENGTH // 2:
        return USAGE.warning(
            f"{waiting} usage records wait in Valkey; at {STREAM_LENGTH} gateways keep the rest "
            "in files.",
            "See to the plan worker and the database: nobody takes the records in.",
        )
    lost = f" Ever dropped as unreadable: {dropped}." if dropped else ""
    return USAGE.ok(f"{waiting} usage records wait to be taken in.{lost}")
