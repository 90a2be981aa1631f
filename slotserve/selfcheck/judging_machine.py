"""Checks of the machines: clocks, time zones, and this machine's disk."""

from datetime import datetime

from gateway.edge.clock import MOST_SKEW_SECONDS
from slotserve.selfcheck.facts import DiskFacts, Facts, ZoneFacts
from slotserve.selfcheck.findings import Finding, Named

CLOCKS = Named("clocks", "Clocks")
ZONES = Named("time-zones", "Time zones")
DISK = Named("disk", "Disk")
LEAST_ZONES = 300  # the whole of them is about 600
OLD_ZONES_YEARS = 2  # countries change their rules several times a year
LOW_BYTES, NO_BYTES = 2 * 2**30, 200 * 2**20
LOW_FILES, NO_FILES = 0.05, 0.01
MB, GB = 2**20, 2**30


def clocks(facts: Facts) -> Finding:
    """This machine, the database and Valkey agree on the time."""
    if isinstance(facts.database, str):
        return CLOCKS.unknown("Not looked at: the database does not answer.")
    offset = None if isinstance(facts.valkey, str) else facts.valkey.offset
    differences = [("this machine's clock", facts.database.local_ahead)]
    differences += [("Valkey's clock", -offset)] if offset is not None else []
    off = [_difference(name, ahead) for name, ahead in differences if _is_off(ahead)]
    if not off:
        most = max(abs(ahead) for _, ahead in differences)
        return CLOCKS.ok(f"Clocks agree within {most:.1f} s.")
    words = " and ".join(off)
    advice = f"Run NTP on each machine; {MOST_SKEW_SECONDS:g} s are allowed."
    return CLOCKS.trouble(f"{words[0].upper()}{words[1:]}.", advice)


def zones(facts: Facts) -> Finding:
    """Python knows the world's time zones, of these years."""
    known = facts.zones
    advice = "Install the system's tzdata package, or `pip install -U tzdata`."
    if not known.is_known:
        words = f"The time zone {known.zone} of SLOTSERVE_TIME_ZONE is not known here."
        return ZONES.trouble(words, advice)
    if known.count < LEAST_ZONES:
        words = f"Only {known.count} time zones are known here: members elsewhere see UTC."
        return ZONES.warning(words, advice)
    if _is_old(known, facts):
        words = f"The time zones are those of {known.version}: rules have changed since."
        return ZONES.warning(words, advice)
    version = f", of {known.version}" if known.version else ""
    return ZONES.ok(f"{known.count} time zones are known{version}.")


def disk(facts: Facts) -> Finding:
    """There is room to write on this machine; others have self-checks of their own."""
    if closed := [each for each in facts.disks if not each.is_writable]:
        words = " ".join(f"{each.path} cannot be written to." for each in closed)
        advice = "Let the user that SlotServe runs as write there, or name other folders: "
        return DISK.trouble(words, f"{advice}SLOTSERVE_DATA, SLOTSERVE_SPOOL_DIR.")
    for is_bad, make in ((_is_full, DISK.trouble), (_is_low, DISK.warning)):
        bad = [each for each in facts.disks if is_bad(each)]
        if bad:
            advice = "Free some space: old logs of model servers, backups, models nobody uses."
            return make(" ".join(_room(each) for each in bad), advice)
    return DISK.ok(" ".join(_room(each) for each in facts.disks))


def _is_off(ahead: float) -> bool:
    return abs(ahead) > MOST_SKEW_SECONDS


def _difference(name: str, ahead: float) -> str:
    return f"{name} is {abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} the database's"


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
    files = (
        f" and room for few files ({disk.free_files:.0%})" if disk.free_files < LOW_FILES else ""
    )
    return f"{disk.path} has {_size(disk.free_bytes)} free{files}."


def _size(count: int) -> str:
    return f"{count // MB} MB" if count < 10 * GB else f"{count // GB} GB"
