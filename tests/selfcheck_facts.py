"""Facts of an installation in order, for the self-check's tests to break one by one."""

from typing import Any

from gateway.edge.table import Head
from lanes.host_health import Trouble
from slotserve.selfcheck.facts import (
    DatabaseFacts,
    DiskFacts,
    Facts,
    HostFacts,
    ReachFacts,
    ValkeyFacts,
    ZoneFacts,
)
from tests.builders import NOON
from wire.edges import EdgeReport

NOW = NOON.timestamp()


def host(
    key: str = "gpu1", *codes: str, has_lanes: bool = True, is_elsewhere: bool = False
) -> HostFacts:
    troubles = (Trouble(code, f"{key} has {code}", f"Mend {code}.") for code in codes)
    return HostFacts(key, f"host {key}", has_lanes, tuple(troubles), is_elsewhere)


def edge(edge_id: str = "edge-1", *, seconds_ago: float = 1.0, goodbye: bool = False) -> EdgeReport:
    return EdgeReport(edge_id, int((NOW - seconds_ago) * 1000), {}, goodbye=goodbye)


def head(*, seconds_ago: float = 2.0, offset: float = 0.0) -> Head:
    return Head(7, NOW + offset - seconds_ago, offset, {})


def database(**changes: Any) -> DatabaseFacts:
    given: dict[str, Any] = {"now": NOON, "local_ahead": 0.01, "is_guarded": True}
    return DatabaseFacts(**given | {"unapplied": (), "hosts": (host(),)} | changes)


def valkey(**changes: Any) -> ValkeyFacts:
    given: dict[str, Any] = {"now_ms": int(NOW * 1000), "offset": 0.0, "head": head()}
    given |= {"edges": (edge(),), "queues": frozenset({"plan", "host.gpu1"})}
    return ValkeyFacts(**given | {"usage_waiting": 3, "usage_dropped": 0} | changes)


def disk(**changes: Any) -> DiskFacts:
    given: dict[str, Any] = {"path": "/data", "free_bytes": 50 * 2**30, "free_files": 0.9}
    return DiskFacts(**given | {"is_writable": True} | changes)


def zones(**changes: Any) -> ZoneFacts:
    given: dict[str, Any] = {"zone": "UTC", "is_known": True, "count": 597, "version": "2029c"}
    return ZoneFacts(**given | changes)


def facts(**changes: Any) -> Facts:
    given: dict[str, Any] = {"database": database(), "valkey": valkey()}
    given |= {"disks": (disk(),), "zones": zones(), "settings": {}, "warnings": {}}
    given |= {"reach": ReachFacts()}
    return Facts(**given | changes)
