"""Maintenance of a lane at a moment. Pure."""

import math
from collections.abc import Sequence

from gateway.edge.table import Closure


def closure_at(closures: Sequence[Closure], now: float) -> tuple[Closure | None, float]:
    """The maintenance that lasts longest of those in force, if one is, and when the next begins."""
    found, begins = None, math.inf
    for closure in closures:
        if closure.start > now:
            begins = min(begins, closure.start)
        elif closure.end is None or now < closure.end:
            found = max(found, closure, key=_closes) if found is not None else closure
    return found, begins


def _closes(closure: Closure) -> float:
    return math.inf if closure.end is None else closure.end
