"""/v1/models: what this caller can use now, and what could be loaded for him, and where. Pure.

A member learns when a lane is free for him, never who has booked it; and only of lanes that his
token may use.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gateway.edge import verdicts
from gateway.edge.closures import closure_at
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routing import (
    Asked,
    Caller,
    Route,
    candidates,
    choose,
    permitted,
    serve,
)
from gateway.edge.table import Closure, LaneRoute, ModelInfo, Table


@dataclass(frozen=True, slots=True)
class Place:
    """A lane that holds a preset or could. Times are seconds since 1970."""

    lane: str  # slug
    phase: str  # of this preset's model server there
    is_loaded: bool  # and takes requests
    free_at: float | None  # when this caller may use the lane; None: now
    booked_at: float | None  # when the lane is next booked for this preset
    ready_at: float | None  # while it loads, as far as is known
    load_seconds: float | None


@dataclass(frozen=True, slots=True)
class Model:
    """A preset as one caller sees it."""

    slug: str
    info: ModelInfo
    aliases: tuple[str, ...]
    engine: str | None  # of the server that answers; None while there is none
    is_loaded: bool  # it answers this caller now, under its name alone
    is_fallback: bool  # it serves in place of the preset that this caller has booked
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class _Outlook:
    """What a lane's bookings mean for one caller."""

    lane: LaneRoute
    free_at: float | None
    booked: Mapping[str, float]  # preset -> when it is next booked, or since when


def list_models(
    table: Table | None, caller: Caller, lane: str | None, now: float, *, max_age: float
) -> tuple[Model, ...] | EdgeRefusal:
    """Every preset that a lane of this caller holds or could: those that answer now come first."""
    found = candidates(table, caller, Asked(None, lane), now, max_age=max_age)
    if isinstance(found, EdgeRefusal):
        return found
    answers = (serve(found.table, found.token, each, Asked(), now) for each in found.lanes)
    routes = {each.upstream.preset: each for each in answers if isinstance(each, Route)}
    outlooks = [
        _outlook(each, found.token.owner_id, now, found.table.closures.get(each.slug, ()))
        for each in permitted(found.table, found.token, lane)
        if each.enabled
    ]
    aliases = _aliases(found.table.presets)
    models = [
        _model(slug, found.table, outlooks, routes.get(slug), aliases.get(slug, ()))
        for slug in _slugs(found.table, outlooks)
    ]
    return tuple(sorted(filter(_has_place, models), key=lambda one: (not one.is_loaded, one.slug)))


def one_model(
    table: Table | None, caller: Caller, asked: Asked, now: float, *, max_age: float
) -> Model | EdgeRefusal:
    """The model of this name or alias, as the list has it; `auto` is what would answer now."""
    models = list_models(table, caller, asked.lane, now, max_age=max_age)
    if isinstance(models, EdgeRefusal):
        return models
    name = asked.name
    if name is None:
        route = choose(table, caller, asked, now, max_age=max_age)
        if isinstance(route, EdgeRefusal):
            return route
        name = route.upstream.preset
    by_name = {alias: model for model in models for alias in model.aliases}
    by_name |= {model.slug: model for model in models}  # a slug wins, as it does in routing
    return by_name.get(name) or verdicts.model_not_found(name)


def _outlook(
    lane: LaneRoute, owner_id: int, now: float, closures: Sequence[Closure] = ()
) -> _Outlook:
    """One walk over the grants, which come in order of start. Maintenance without an end is none of
    them: nobody knows when the lane is free."""
    closure, _ = closure_at(closures, now)
    free_at = closure.end if closure is not None and closure.end is not None else now
    booked: dict[str, float] = {}
    for grant in lane.grants:
        if grant.end <= now:
            continue
        if grant.preset is not None:
            booked.setdefault(grant.preset, grant.start)
        if grant.start <= free_at < grant.end and (
            grant.preset is None or not grant.admits(owner_id)
        ):
            free_at = grant.end
    return _Outlook(lane, free_at if free_at > now else None, booked)


def _aliases(presets: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    names: dict[str, tuple[str, ...]] = {}
    for name, slug in presets.items():
        if name != slug:
            names[slug] = (*names.get(slug, ()), name)
    return names


def _slugs(table: Table, outlooks: Iterable[_Outlook]) -> set[str]:
    """Every preset that is known, and those that lanes are about."""
    slugs = set(table.catalogue)
    for outlook in outlooks:
        lane = outlook.lane
        slugs.update(outlook.booked)
        slugs.update(slug for slug in (lane.target, _held(lane)) if slug)
    return slugs


def _model(
    slug: str,
    table: Table,
    outlooks: Iterable[_Outlook],
    route: Route | None,
    aliases: tuple[str, ...],
) -> Model:
    info = table.catalogue.get(slug) or ModelInfo(slug)
    served = route.upstream if route is not None else None
    names = {*aliases, *(served.names if served else ())} - {slug}
    return Model(
        slug=slug,
        info=info,
        aliases=tuple(sorted(names)),
        engine=served.engine if served else None,
        is_loaded=served is not None,
        is_fallback=route is not None and route.fallback is not None,
        places=tuple(_place(slug, info, each) for each in outlooks if _concerns(slug, info, each)),
    )


def _concerns(slug: str, info: ModelInfo, outlook: _Outlook) -> bool:
    lane = outlook.lane
    return slug in (lane.target, _held(lane)) or slug in outlook.booked or lane.slug in info.lanes


def _place(slug: str, info: ModelInfo, outlook: _Outlook) -> Place:
    lane = outlook.lane
    phase = _phase(slug, lane)
    return Place(
        lane=lane.slug,
        phase=phase,
        is_loaded=phase == "ready",
        free_at=outlook.free_at,
        booked_at=outlook.booked.get(slug),
        ready_at=lane.eta if lane.target == slug and phase != "ready" else None,
        load_seconds=info.lane_seconds.get(lane.slug, info.load_seconds),
    )


def _phase(slug: str, lane: LaneRoute) -> str:
    """Of this preset on this lane, whatever else the lane may be busy with."""
    if _held(lane) == slug:
        return "draining" if lane.draining else lane.phase
    if lane.target == slug:
        return "failed" if lane.phase == "failed" else "starting"
    return "stopped"


def _held(lane: LaneRoute) -> str | None:
    return lane.upstream.preset if lane.upstream is not None else None


def _has_place(model: Model) -> bool:
    return bool(model.places)
