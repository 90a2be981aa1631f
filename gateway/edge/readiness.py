"""/ready: whether this edge should get requests, and why not."""

from typing import Any

from gateway.edge.clock import MOST_SKEW_SECONDS, EdgeClock
from gateway.edge.table import Table


def readiness(
    table: Table | None,
    clock: EdgeClock,
    *,
    max_age: float,
    is_stopping: bool = False,
    has_twin: bool = False,
) -> tuple[bool, dict[str, Any]]:
    """Ready with a fresh table and clocks that agree; the lanes are told, not judged."""
    reasons = []
    now, skew = clock.now(), clock.skew()
    if table is None:
        reasons.append("no route table has been read yet")
    elif now - table.confirmed_at > max_age:
        reasons.append(f"the route table is {now - table.confirmed_at:.0f} s old")
    if skew > MOST_SKEW_SECONDS:
        reasons.append(f"clocks differ by {skew:.1f} s; {MOST_SKEW_SECONDS:g} s are allowed")
    if clock.is_in_doubt:
        reasons.append("this machine's clock has been set, and Valkey has not told the time since")
    if is_stopping:
        reasons.append("the gateway is being stopped")
    if has_twin:
        reasons.append("another gateway has the same SLOTSERVE_EDGE_ID; give each its own")
    return not reasons, {
        "status": "not ready" if reasons else "ready",
        "reasons": reasons,
        "table": None
        if table is None
        else {"version": table.version, "age_seconds": round(now - table.confirmed_at, 3)},
        "clock_skew_seconds": round(skew, 3),
        "lanes": {
            lane.slug: {"phase": lane.phase, "draining": lane.draining, "enabled": lane.enabled}
            for lane in (table.lanes.values() if table is not None else ())
        },
    }
