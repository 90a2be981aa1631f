"""Checks of those who do the work: the plan worker, and each host's."""

from django.utils.translation import gettext as _

from lanes.host_watch import GONE
from lanes.telling import tell
from lanes.ticks import host_queue
from slotserve.selfcheck.facts import Facts
from slotserve.selfcheck.findings import Finding, Named
from wire.words import marked

WORKERS = Named("workers", marked("Workers"))
HOSTS = Named("hosts", marked("Hosts"))
JOINING = Named("joining", marked("Joining of hosts"))
PLAN_QUEUE = "plan"
GRAVE = GONE | {"bad_address", "clock_skew", "driver_failing"}  # its lanes serve nobody, or wrongly


def workers(facts: Facts) -> Finding:
    """Somebody plans, and each host with lanes has its worker."""
    if isinstance(facts.valkey, str):
        return WORKERS.unknown(_("Not looked at: workers answer through Valkey."))
    wanted = [PLAN_QUEUE]
    if not isinstance(facts.database, str):
        wanted += [host_queue(host.key) for host in facts.database.hosts if host.has_lanes]
    missing = [queue for queue in wanted if queue not in facts.valkey.queues]
    if not missing:
        return WORKERS.ok(_("Workers serve every queue: %(names)s.") % {"names": ", ".join(wanted)})
    words = _("No worker serves %(names)s.") % {"names": ", ".join(missing)}
    return WORKERS.trouble(words, _("Start one: `celery -A slotserve worker -Q QUEUE …`."))


def hosts(facts: Facts) -> Finding:
    """Each host is there and well; what is wrong with one is what its page says."""
    if isinstance(facts.database, str):
        return HOSTS.unknown(_("Not looked at: the database does not answer."))
    known = facts.database.hosts
    found = [(host, trouble) for host in known for trouble in host.troubles]
    if not found:
        return HOSTS.ok(
            _("Every host is there and well.") if known else _("No host has joined yet.")
        )
    words = "; ".join(tell(trouble.words) for host, trouble in found)
    advice = " ".join(dict.fromkeys(tell(trouble.hint) for host, trouble in found))
    is_grave = any(host.has_lanes and trouble.code in GRAVE for host, trouble in found)
    make = HOSTS.trouble if is_grave else HOSTS.warning
    return make(_("%(upper)s%(words)s.") % {"upper": words[0].upper(), "words": words[1:]}, advice)


def joining(facts: Facts) -> Finding:
    """Other machines can join; where none has, they need not."""
    why_not = facts.reach.why_not
    if not why_not:
        return JOINING.ok(f"Other machines can join as hosts. {facts.reach.note}".strip())
    known = () if isinstance(facts.database, str) else facts.database.hosts
    if any(host.is_elsewhere for host in known):
        return JOINING.warning(why_not, _("Hosts that are there go on; none can be added."))
    return JOINING.ok(_("All hosts are this machine. %(why_not)s") % {"why_not": why_not})
