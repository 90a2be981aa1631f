"""One lane as edges see it, from what the database says of it. Pure."""

from datetime import datetime, timedelta

from gateway.edge.table import LaneRoute, Upstream
from gateway.route_facts import LaneFacts, Server
from lanes.backoff import retry_wait
from lanes.lifecycle import satisfies
from lanes.steps import Phase, Running, Wanted

SERVING = (Phase.READY.value, Phase.DRAINING.value)


def lane_route(lane: LaneFacts, drain_seconds: float) -> LaneRoute:
    """The lane's part of the route table. The same facts give the same part at any time."""
    is_draining = lane.server is not None and is_leaving(lane, lane.server)
    drain_until = _drain_until(lane, drain_seconds) if is_draining else None
    failing = lane.failing if lane.server is None else None
    return LaneRoute(
        slug=lane.slug,
        enabled=lane.is_enabled,
        generation=lane.generation,
        phase=_phase(lane),
        upstream=_upstream(lane.server),
        draining=is_draining,
        drain_until=_seconds(drain_until),
        cut=lane.server is not None and _is_cut(lane, lane.server),
        target=lane.target,
        eta=None if lane.is_unreachable else _seconds(_ready_from(lane, drain_until)),
        is_fallback=lane.is_fallback,
        failure=failing.reason if failing else None,
        retry_at=_seconds(_retry_at(lane)),
        unreachable=lane.is_unreachable,
        grants=lane.grants,
    )


def is_leaving(lane: LaneFacts, server: Server) -> bool:
    """Whether new requests must not reach the server: it drains, or the order wants another."""
    wanted = Wanted(lane.generation, lane.target_id, lane.is_reload, lane.fresh_from)
    phase = Phase(server.phase)
    running = Running(server.generation, server.revision_id, phase, server.started_at)
    return phase is Phase.DRAINING or not satisfies(running, wanted)


def _is_cut(lane: LaneFacts, server: Server) -> bool:
    return lane.is_reload and lane.generation > server.generation


def _phase(lane: LaneFacts) -> str:
    if lane.server is not None:
        return lane.server.phase
    return "failed" if lane.failing is not None else "stopped"


def _upstream(server: Server | None) -> Upstream | None:
    if server is None or server.phase not in SERVING:
        return None
    host = f"[{server.address}]" if ":" in server.address else server.address
    return Upstream(
        generation=server.generation,
        preset=server.preset,
        names=(server.preset, *server.aliases),
        base_url=f"http://{host}:{server.port}",
        sealed_key=server.sealed_key,
        engine=server.engine,
        slots=server.slots,
    )


def _drain_until(lane: LaneFacts, drain_seconds: float) -> datetime | None:
    """The server's own deadline; until its host has set one, that of a drain begun at the order."""
    if lane.server is not None and lane.server.drain_until is not None:
        return lane.server.drain_until
    return lane.ordered_at and lane.ordered_at + timedelta(seconds=drain_seconds)


def _ready_from(lane: LaneFacts, drain_until: datetime | None) -> datetime | None:
    """When the target is expected to be ready; None when it is, or when there is no target."""
    if lane.load_seconds is None:
        return None
    starts = _load_from(lane, drain_until)
    return starts and starts + timedelta(seconds=lane.load_seconds)


def _load_from(lane: LaneFacts, drain_until: datetime | None) -> datetime | None:
    """When its load has begun or will begin, as far as is known."""
    server = lane.server
    if server is None:
        return _retry_at(lane) or lane.ordered_at
    if is_leaving(lane, server):
        return lane.ordered_at if _is_cut(lane, server) else drain_until
    return server.started_at if server.phase == Phase.STARTING.value else None


def _retry_at(lane: LaneFacts) -> datetime | None:
    if lane.failing is None or lane.server is not None:
        return None
    return lane.failing.failed_at + timedelta(seconds=retry_wait(lane.failing.count))


def _seconds(moment: datetime | None) -> float | None:
    return moment.timestamp() if moment is not None else None
