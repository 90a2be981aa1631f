"""Where one request goes: the table of who may call, and the order of refusals (binding).

Order: token, lane, ownership, maintenance, whole GPU, unknown model, loading for the owner of a
booking in progress, draining, loading, failed, none, not loaded, limits.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gateway.edge import verdicts
from gateway.edge.closures import closure_at
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.table import (
    Closure,
    Grant,
    LaneRoute,
    OwnLanes,
    SlotToken,
    Table,
    TokenEntry,
    Upstream,
)

MAX_AGE = 300.0
SCOPES = frozenset({"inference", "admin"})
_IDLE: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the SHA-256 of the credential, or None when none was shown."""

    digest: str | None


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for. No model (or "auto"): what is loaded. No lane: any that fits."""

    model: str | None = None
    lane: str | None = None

    @property
    def name(self) -> str | None:
        """The model's name, or None for whatever is loaded."""
        return None if self.model in (None, "", "auto") else self.model


@dataclass(frozen=True, slots=True)
class Route:
    """Where the request may go now, and by what right."""

    lane: LaneRoute
    upstream: Upstream
    token: TokenEntry
    grant: Grant | None = None  # the caller's booking in progress
    fallback: str | None = None  # the preset that serves in place of the booked one
    until: float = -math.inf  # as long as the table stays, nothing changes before this time


def choose(  # the shape is fixed by the design; the keywords have defaults
    table: Table | None,
    caller: Caller,
    request: Asked,
    now: float,
    *,
    in_flight: Mapping[str, int] = _IDLE,
    max_age: float = MAX_AGE,
) -> Route | EdgeRefusal:
    """The lane that serves this request now, or the most helpful refusal.

    `now` is the edge's clock in the database's time; `in_flight` counts requests by lane.
    """
    found = routes_to(table, caller, request, now, max_age=max_age)
    if isinstance(found, EdgeRefusal):
        return found
    return min(found, key=lambda route: in_flight.get(route.lane.slug, 0))


def routes_to(
    table: Table | None, caller: Caller, request: Asked, now: float, *, max_age: float = MAX_AGE
) -> list[Route] | EdgeRefusal:
    """Every lane that serves this request now, at least one; else the most helpful refusal."""
    found = candidates(table, caller, request, now, max_age=max_age)
    if isinstance(found, EdgeRefusal):
        return found
    table, token, lanes = found.table, found.token, found.lanes
    answers = [serve(table, token, lane, request, now) for lane in lanes]
    routes = [answer for answer in answers if isinstance(answer, Route)]
    if routes:
        return routes
    refused = [
        (lane, answer)
        for lane, answer in zip(lanes, answers, strict=True)
        if isinstance(answer, EdgeRefusal)
    ]
    return verdicts.most_helpful(refused, wanted_slug(table, request))


@dataclass(frozen=True, slots=True)
class Candidates:
    """The lanes that may be asked for this caller, and what his token says."""

    table: Table
    token: TokenEntry
    lanes: tuple[LaneRoute, ...]


def candidates(
    table: Table | None, caller: Caller, request: Asked, now: float, *, max_age: float = MAX_AGE
) -> Candidates | EdgeRefusal:
    """Which lanes come into question: the named one, else the caller's own, else all."""
    if table is None:
        return verdicts.gateway_starting()
    is_stale = now - table.confirmed_at > max_age
    token = identify(table, caller, now, is_stale=is_stale)
    if isinstance(token, EdgeRefusal):
        return token
    lanes = permitted(table, token, request.lane)
    own = _own(table, token, request, now)
    if is_stale and not own:
        return verdicts.gateway_stale(now - table.confirmed_at)
    if not lanes:
        return verdicts.no_lane(request.lane)
    return Candidates(table, token, own or tuple(lanes))


def identify(
    table: Table, caller: Caller, now: float, *, is_stale: bool = False
) -> TokenEntry | EdgeRefusal:
    """The caller's token. A stale table cannot call a token wrong that it does not know."""
    if caller.digest is None:
        return verdicts.no_key()
    token = table.tokens.get(caller.digest)
    if token is None:
        return verdicts.gateway_stale(now - table.confirmed_at) if is_stale else verdicts.bad_key()
    if token.expires_at is not None and token.expires_at <= now:
        return verdicts.expired_key(token.expires_at)
    if isinstance(token, SlotToken) and now < token.starts_at:
        return verdicts.early_key(token.starts_at)
    return verdicts.key_without_scope() if SCOPES.isdisjoint(token.scopes) else token


def serve(
    table: Table, token: TokenEntry, lane: LaneRoute, request: Asked, now: float
) -> Route | EdgeRefusal:
    """Whether this one lane serves the request now, in the order of refusals."""
    grant, until = grant_at(lane, now)
    closure, open_until = closure_at(table.closures.get(lane.slug, ()), now)
    barred = _barred(token, lane, grant, closure, now)
    if barred is not None:
        return barred
    if request.name is not None and not _is_known(table, lane, request.name):
        return verdicts.model_not_found(request.name)
    is_fallback = grant is not None and _serves_fallback(lane, grant)
    if grant is not None and not is_fallback and _is_loading_for(lane, grant):
        return verdicts.yet_to_come(lane, grant.preset, now)
    upstream = verdicts.condition(lane, now)
    if isinstance(upstream, EdgeRefusal):
        return upstream if _may_come(table, lane, grant, request) else verdicts.for_good(upstream)
    booked = grant.preset if grant is not None and is_fallback else None
    if request.name is not None and not _holds(upstream, table, request.name, booked):
        return verdicts.model_not_loaded(table, lane, upstream, request.name, now)
    expires_at = math.inf if token.expires_at is None else token.expires_at
    until = min(until, open_until, expires_at)
    return Route(lane, upstream, token, grant, upstream.preset if is_fallback else None, until)


def _barred(
    token: TokenEntry, lane: LaneRoute, grant: Grant | None, closure: Closure | None, now: float
) -> EdgeRefusal | None:
    """Why nothing on this lane is for the caller now, whatever it runs."""
    if grant is not None and not grant.admits(token.owner_id):
        return verdicts.gpu_reserved(lane, grant, now)
    if closure is not None:
        return verdicts.lane_maintenance(lane, closure, now)
    if grant is not None and grant.preset is None:
        return verdicts.gpu_exclusive(lane, grant, now)
    return None


def active_grant(lane: LaneRoute, now: float) -> Grant | None:
    """The booking in progress: start <= now < end."""
    return grant_at(lane, now)[0]


def grant_at(lane: LaneRoute, now: float) -> tuple[Grant | None, float]:
    """The booking in progress, and until when that holds. Grants come in order of start."""
    for grant in lane.grants:
        if grant.start > now:
            return None, grant.start
        if now < grant.end:
            return grant, grant.end
    return None, math.inf


def permitted(table: Table, token: TokenEntry, slug: str | None) -> Collection[LaneRoute]:
    """The lanes that this token may use: of all, or of the one that is named."""
    if slug is not None:
        lane = table.lanes.get(slug)
        lanes: Collection[LaneRoute] = () if lane is None else (lane,)
    else:
        lanes = table.lanes.values()
    return lanes if not token.lanes else [lane for lane in lanes if lane.slug in token.lanes]


def _is_asked(slug: str, token: TokenEntry, named: str | None) -> bool:
    return (named is None or slug == named) and (not token.lanes or slug in token.lanes)


def _own(table: Table, token: TokenEntry, request: Asked, now: float) -> tuple[LaneRoute, ...]:
    """The lanes of the caller's bookings in progress that are meant; else of those shared with
    them, unless another model is named: nobody is kept from a free lane by what others share."""
    known = _admitting(table, token.owner_id, now)
    if not (known.lanes or known.shared):
        return ()
    own, shared = (
        tuple([lane for lane in lanes if _is_asked(lane.slug, token, request.lane)])
        for lanes in (known.lanes, known.shared)
    )
    if request.lane is not None:
        return own or shared
    if own:
        return (_booked_for(own, table, request, now) or own) if len(own) > 1 else own
    return shared if request.name is None else _booked_for(shared, table, request, now)


def _admitting(table: Table, person_id: int, now: float) -> OwnLanes:
    """The lanes whose slot is open to this person at the moment; remembered until that changes."""
    known = table.own_lanes.get(person_id)
    if known is None or not known.since <= now < known.until:
        known = table.own_lanes[person_id] = find_own_lanes(table, person_id, now)
    return known


def find_own_lanes(table: Table, person_id: int, now: float) -> OwnLanes:
    """The lanes whose booking in progress admits this person, and until when these are all."""
    own: list[LaneRoute] = []
    shared: list[LaneRoute] = []
    until = math.inf
    for lane in table.lanes.values():
        if not lane.may_admit(person_id):
            continue
        left = (one for one in lane.grants if one.end > now and one.admits(person_id))
        grant = next(left, None)
        if grant is not None and grant.start <= now:
            (own if grant.owner_id == person_id else shared).append(lane)
        if grant is not None:
            until = min(until, grant.end if grant.start <= now else grant.start)
    return OwnLanes(tuple(own), tuple(shared), now, until)


def wanted_slug(table: Table, request: Asked) -> str | None:
    """The preset that the request names, by slug or alias."""
    return None if request.name is None else table.presets.get(request.name, request.name)


def _booked_for(
    lanes: tuple[LaneRoute, ...], table: Table, request: Asked, now: float
) -> tuple[LaneRoute, ...]:
    """Those of the caller's booked lanes whose booking is for the named preset."""
    wanted = wanted_slug(table, request)
    grants = ((lane, active_grant(lane, now)) for lane in lanes)
    return tuple(lane for lane, grant in grants if grant and wanted and grant.preset == wanted)


def _is_known(table: Table, lane: LaneRoute, name: str) -> bool:
    return name in table.presets or (lane.upstream is not None and name in lane.upstream.names)


def _holds(upstream: Upstream, table: Table, name: str, booked: str | None) -> bool:
    """Whether the server may be called by this name: its own, or the booked one it stands for."""
    wanted = table.presets.get(name, name)
    return name in upstream.names or wanted in (upstream.preset, booked)


def _may_come(table: Table, lane: LaneRoute, grant: Grant | None, request: Asked) -> bool:
    """Whether the named model is what the lane is about to run, so that waiting can help."""
    wanted = wanted_slug(table, request)
    booked = grant.preset if grant is not None else None
    return wanted is None or wanted in (lane.target, booked)


def _serves_fallback(lane: LaneRoute, grant: Grant) -> bool:
    is_other = lane.upstream is not None and lane.upstream.preset != grant.preset
    return lane.is_fallback and is_other and lane.phase == "ready" and not lane.draining


def _is_loading_for(lane: LaneRoute, grant: Grant) -> bool:
    """Whether the booked model is yet to come; a failed one has a refusal of its own."""
    is_there = lane.upstream is not None and lane.upstream.preset == grant.preset
    return not is_there and lane.phase != "failed"
