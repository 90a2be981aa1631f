"""What is wrong with a host, from what is known of it. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address

from wire.words import Day, marked, said

SKEW_SECONDS = 2.0  # beyond it times in pages and logs mislead, and leases of Valkey end early
LEAST_FREE_BYTES = 2 * 2**30
LEAST_FREE_SHARE = 0.03
AHEAD = marked("The clock of {host} is {seconds:.1f} s ahead of the database's")
BEHIND = marked("The clock of {host} is {seconds:.1f} s behind the database's")
MARGIN = 1.25  # by which a value must be better than its limit before it is clearly right


@dataclass(frozen=True, slots=True)
class Report:
    """What a host's worker said last."""

    at: datetime
    version: str
    clock_skew: float  # seconds ahead of the database's clock
    disk_free_bytes: int
    disk_total_bytes: int
    is_driver_failing: bool = False
    driver_words: str = ""
    is_user_shared: bool = False


@dataclass(frozen=True, slots=True)
class HostFacts:
    """One host. `has_cards`: cards are registered for it."""

    name: str
    address: str
    seen_at: datetime | None = None
    asked_at: datetime | None = None
    unreachable_since: datetime | None = None
    has_cards: bool = False
    report: Report | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that is wrong: a code for programs, what it is, what to do."""

    code: str
    words: str
    hint: str


def is_overdue(seen_at: datetime | None, now: datetime, silent: timedelta) -> bool:
    """Whether a host's last look is so long ago that from now on the asking counts."""
    return seen_at is None or seen_at < now - silent / 2


def is_unreachable(facts: HostFacts, now: datetime, silent: timedelta) -> bool:
    """Whether it has not looked for `silent` seconds, though it was asked for half of them.

    So nobody is called unreachable because the beat, the broker or the database was away.
    """
    if facts.seen_at is not None and facts.seen_at >= now - silent:
        return False
    asked = facts.asked_at
    if asked is None or (facts.seen_at is not None and asked <= facts.seen_at):
        return False
    return asked <= now - silent / 2


def unreachable_since(facts: HostFacts, now: datetime, silent: timedelta) -> datetime | None:
    """Since when nothing is known of it, after this look; None: it is there."""
    since = facts.unreachable_since
    if since is None:
        return (facts.seen_at or now) if is_unreachable(facts, now, silent) else None
    is_back = facts.seen_at is not None and facts.seen_at >= now - silent
    return None if is_back else since


def troubles(facts: HostFacts, version: str, *, margin: float = 1.0) -> list[Trouble]:
    """All that is wrong, the worst first. `version` is what the asking process runs.

    With a `margin`, also what is right by less than that.
    """
    return [*_silence(facts), *_place(facts), *_reported(facts, version, margin)]


def _silence(facts: HostFacts) -> Iterator[Trouble]:
    if facts.unreachable_since is None:
        return
    if facts.seen_at is None:
        words = said("{host} has never reported", host=facts.name)
        yield Trouble("never_seen", words, said("Start its worker, or join it anew."))
        return
    since = Day(facts.seen_at, UTC)
    words = said("{host} has not answered since {since}", host=facts.name, since=since)
    hint = said("See that it runs, and that it reaches the database and Valkey.")
    yield Trouble("unreachable", words, hint)


def _place(facts: HostFacts) -> Iterator[Trouble]:
    address = _address(facts)
    if address is None:
        words = said(
            "{address} is no IP address, so {host} starts no model server",
            address=facts.address,
            host=facts.name,
        )
        yield Trouble("bad_address", words, said("Give it one, such as 127.0.0.1 or 10.0.0.5."))
    elif address.is_global:
        words = said(
            "Model servers of {host} listen on the public address {address}",
            host=facts.name,
            address=facts.address,
        )
        yield Trouble("public_address", words, said("Give it an address of a private network."))


def _reported(facts: HostFacts, version: str, margin: float) -> Iterator[Trouble]:
    report = facts.report
    if report is None:
        return
    if abs(report.clock_skew) * margin > SKEW_SECONDS:
        text = AHEAD if report.clock_skew > 0 else BEHIND
        words = said(text, host=facts.name, seconds=abs(report.clock_skew))
        yield Trouble("clock_skew", words, said("Keep the clocks of all machines in step, by NTP."))
    if report.version != version:
        words = said(
            "{host} runs {its}, SlotServe here {own}",
            host=facts.name,
            its=report.version,
            own=version,
        )
        yield Trouble(
            "other_version", words, said("Install the same code everywhere; restart workers.")
        )
    least = max(LEAST_FREE_BYTES, LEAST_FREE_SHARE * report.disk_total_bytes)
    if report.disk_free_bytes < min(least, report.disk_total_bytes / 2) * margin:
        free = report.disk_free_bytes / 2**30
        words = said(
            "The data folder's disk of {host} has {free:.1f} GiB left", host=facts.name, free=free
        )
        yield Trouble("disk_full", words, said("Make room: servers log there."))
    if report.is_driver_failing and facts.has_cards:
        words = said(
            "The GPUs of {host} cannot be read: {why}", host=facts.name, why=report.driver_words
        )
        yield Trouble("driver_failing", words, said("Run nvidia-smi there."))
    address = _address(facts)
    if report.is_user_shared and address is not None and not address.is_loopback:
        words = said("Model servers of {host} run as the worker's own user", host=facts.name)
        hint = said(
            "Set SLOTSERVE_RUN_AS, so that code in a model cannot read the worker's secrets."
        )
        yield Trouble("shared_user", words, hint)


def _address(facts: HostFacts) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(facts.address)
    except ValueError:
        return None
