"""Checks of the machines: clocks, time zones, and this machine's disk."""

from datetime import datetime

from django.utils.translation import gettext as _

from gateway.edge.clock import MOST_SKEW_SECONDS
from slotserve.selfcheck.facts import DiskFacts, Facts, ZoneFacts
from slotserve.selfcheck.findings import Finding, Named
from wire.words import marked

CLOCKS = Named("clocks", marked("Clocks"))
ZONES = Named("time-zones", marked("Time zones"))
DISK = Named("disk", marked("Disk"))
LEAST_ZONES = 300  # the whole of them is about 600
OLD_ZONES_YEARS = 2  # countries change their rules several times a year
LOW_BYTES, NO_BYTES = 2 * 2**30, 200 * 2**20
LOW_FILES, NO_FILES = 0.05, 0.01
MB, GB = 2**20, 2**30


def clocks(facts: Facts) -> Finding:
    """This machine, the database and Valkey agree on the time."""
    if isinstance(facts.database, str):
        return CLOCKS.unknown(_("Not looked at: the database does not answer."))
    offset = None if isinstance(facts.valkey, str) else facts.valkey.offset
    differences = [(_("This machine's clock"), facts.database.local_ahead)]
    differences += [(_("Valkey's clock"), -offset)] if offset is not None else []
    off = [_difference(name, ahead) for name, ahead in differences if _is_off(ahead)]
    if not off:
        most = max(abs(ahead) for _, ahead in differences)
        return CLOCKS.ok(_("Clocks agree within %(seconds).1f s.") % {"seconds": most})
    advice = _("Run NTP on each machine; %(seconds)g s are allowed.")
    return CLOCKS.trouble(" ".join(off), advice % {"seconds": MOST_SKEW_SECONDS})


def zones(facts: Facts) -> Finding:
    """Python knows the world's time zones, of these years."""
    known = facts.zones
    advice = _("Install the system's tzdata package, or `pip install -U tzdata`.")
    if not known.is_known:
        words = _("The time zone %(zone)s of SLOTSERVE_TIME_ZONE is not known here.") % {
            "zone": known.zone
        }
        return ZONES.trouble(words, advice)
    if known.count < LEAST_ZONES:
        words = _("Only %(count)s time zones are known here: members elsewhere see UTC.") % {
            "count": known.count
        }
        return ZONES.warning(words, advice)
    if _is_old(known, facts):
        words = _("The time zones are those of %(version)s: rules have changed since.") % {
            "version": known.version
        }
        return ZONES.warning(words, advice)
    if not known.version:
        return ZONES.ok(_("%(count)s time zones are known.") % {"count": known.count})
    words = _("%(count)s time zones are known, of %(version)s.")
    return ZONES.ok(words % {"count": known.count, "version": known.version})


def disk(facts: Facts) -> Finding:
    """There is room to write on this machine; others have self-checks of their own."""
    if closed := [each for each in facts.disks if not each.is_writable]:
        words = " ".join(
            _("%(path)s cannot be written to.") % {"path": each.path} for each in closed
        )
        advice = _(
            "Let the user that SlotServe runs as write there, or name other folders: "
            "SLOTSERVE_DATA, SLOTSERVE_SPOOL_DIR."
        )
        return DISK.trouble(words, advice)
    for is_bad, make in ((_is_full, DISK.trouble), (_is_low, DISK.warning)):
        bad = [each for each in facts.disks if is_bad(each)]
        if bad:
            advice = _("Free some space: old logs of model servers, backups, models nobody uses.")
            return make(" ".join(_room(each) for each in bad), advice)
    return DISK.ok(" ".join(_room(each) for each in facts.disks))


def _is_off(ahead: float) -> bool:
    return abs(ahead) > MOST_SKEW_SECONDS


def _difference(name: str, ahead: float) -> str:
    words = (
        _("%(clock)s is %(seconds).1f s ahead of the database's.")
        if ahead > 0
        else _("%(clock)s is %(seconds).1f s behind the database's.")
    )
    return words % {"clock": name, "seconds": abs(ahead)}


def _is_old(known: ZoneFacts, facts: Facts) -> bool:
    year = known.version[:4]
    if isinstance(facts.database, str) or not year.isdecimal():
        return False
    now: datetime = facts.database.now
    return int(year) < now.year - OLD_ZONES_YEARS


def _is_full(disk: DiskFacts) -> bool:
    return disk.free_bytes < NO_BYTES or disk.free_files < NO_FILES


def _is_low(disk: DiskFacts) -> bool:
    return disk.free_bytes < LOW_BYTES or disk.free_files < LOW_FILES


def _room(disk: DiskFacts) -> str:
    told = {"path": disk.path, "size": _size(disk.free_bytes)}
    if disk.free_files >= LOW_FILES:
        return _("%(path)s has %(size)s free.") % told
    words = _("%(path)s has %(size)s free and room for few files (%(share)s).")
    return words % {**told, "share": f"{disk.free_files:.0%}"}


def _size(count: int) -> str:
    return f"{count // MB} MB" if count < 10 * GB else f"{count // GB} GB"
