"""When a running request must end although neither side wants it to. Pure.

A drain ends it at its deadline, a reload at once, another's booking and maintenance after the drain
time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.edge.refusals import EdgeRefusal, refuse
from gateway.edge.table import Closure, LaneRoute, Upstream
from gateway.edge.verdicts import host_unreachable, lane_maintenance, model_switching


@dataclass(frozen=True, slots=True)
class Running:
    """A request that was admitted: for whom, and to which server."""

    owner_id: int
    upstream: Upstream


@dataclass(frozen=True, slots=True)
class Ending:
    """Give the request up at this time, with these words."""

    at: float
    refusal: EdgeRefusal


def ending(
    lane: LaneRoute | None,
    running: Running,
    now: float,
    drain_seconds: float,
    closures: Sequence[Closure] = (),
) -> Ending | None:
    """The earliest reason to end this request, or None. Times that have passed mean at once."""
    if lane is None or not _is_same(lane.upstream, running.upstream):
        words = "the model server that ran this request has been stopped."
        return Ending(now, refuse("model_switching", words, None))
    if lane.cut and (lane.draining or running.upstream.generation < lane.generation):
        return Ending(now, model_switching(lane, now))
    reasons = [
        _drain(lane, now),
        _another(lane, running, now, drain_seconds),
        _maintenance(lane, closures, now, drain_seconds),
    ]
    return min((one for one in reasons if one), key=lambda one: one.at, default=None)


def broken_by_order(lane: LaneRoute | None, running: Running, now: float) -> EdgeRefusal | None:
    """Why a server broke off when that is not its failure: the lane was ordered to run something
    newer, or its host has vanished."""
    if lane is not None and lane.unreachable:
        return host_unreachable(lane.slug)
    if lane is None or lane.generation <= running.upstream.generation:
        return None
    return model_switching(lane, now)


def _is_same(held: Upstream | None, used: Upstream) -> bool:
    return held is not None and (held.base_url, held.generation) == (used.base_url, used.generation)


def _drain(lane: LaneRoute, now: float) -> Ending | None:
    if not lane.draining or lane.drain_until is None:
        return None
    return Ending(lane.drain_until, model_switching(lane, max(now, lane.drain_until)))


def _another(lane: LaneRoute, running: Running, now: float, drain_seconds: float) -> Ending | None:
    """The first booking that does not admit them and that lasts longer than the drain time."""
    for grant in lane.grants:
        at = grant.start + drain_seconds
        if not grant.admits(running.owner_id) and grant.end > max(now, at):
            words = f"lane '{lane.slug}' has been booked by another member."
            return Ending(at, refuse("model_switching", words, grant.end - max(now, at)))
    return None


def _maintenance(
    lane: LaneRoute, closures: Sequence[Closure], now: float, drain_seconds: float
) -> Ending | None:
    """The first maintenance that lasts longer than the drain time."""
    lasting = [c for c in closures if c.end is None or c.end > max(now, c.start + drain_seconds)]
    closure = min(lasting, key=lambda each: each.start, default=None)
    if closure is None:
        return None
    at = closure.start + drain_seconds
    return Ending(at, lane_maintenance(lane, closure, max(now, at)))
