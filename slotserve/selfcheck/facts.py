"""What the self-check knows when it judges. Read by `reading.py`, judged by `judging.py`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from gateway.edge.table import Head
from lanes.host_health import Trouble
from wire.edges import EdgeReport


@dataclass(frozen=True, slots=True)
class HostFacts:
    """A machine with model servers, and what is wrong with it."""

    key: str
    name: str
    has_lanes: bool  # enabled ones
    troubles: tuple[Trouble, ...] = ()
    is_elsewhere: bool = False  # its address is no loopback


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """What the database says of itself."""

    now: datetime
    local_ahead: float  # this machine's clock minus its own, seconds
    is_guarded: bool  # against overlapping bookings
    unapplied: tuple[str, ...]  # migrations of this release that have not run
    hosts: tuple[HostFacts, ...] = ()


@dataclass(frozen=True, slots=True)
class ValkeyFacts:
    """What Valkey holds, and who answers through it."""

    now_ms: int
    offset: float | None  # the database's clock minus Valkey's, seconds
    head: Head | str | None  # of the route table; a sentence when it cannot be read
    edges: tuple[EdgeReport, ...]
    queues: frozenset[str]  # that living workers take tasks from
    usage_waiting: int
    usage_dropped: int


@dataclass(frozen=True, slots=True)
class ReachFacts:
    """Database and Valkey as other machines see them."""

    why_not: str = ""  # why no machine can join; empty: one can
    note: str = ""  # what may keep one from joining all the same
    open_valkey: str = ""  # where Valkey answers others without a password


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """A folder of this machine."""

    path: str
    free_bytes: int
    free_files: float  # share of the files that may still be made, 0..1
    is_writable: bool


@dataclass(frozen=True, slots=True)
class ZoneFacts:
    """Python's time zones."""

    zone: str  # SLOTSERVE_TIME_ZONE
    is_known: bool
    count: int
    version: str  # such as 2025b; empty: it does not say


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything at one moment. A sentence stands for what could not be asked."""

    database: DatabaseFacts | str
    valkey: ValkeyFacts | str
    disks: tuple[DiskFacts, ...]
    zones: ZoneFacts
    reach: ReachFacts
    settings: Mapping[str, str]  # complaint -> what to do: of Django's checks, errors only
    warnings: Mapping[str, str]  # the same of warnings
