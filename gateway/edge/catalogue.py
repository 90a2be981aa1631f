"""/v1/models: what this caller can use now, in OpenAI's shape. Pure."""

from typing import Any

from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routing import Asked, Caller, Route, candidates, choose, serve
from gateway.edge.table import Table


def list_models(
    table: Table | None, caller: Caller, lane: str | None, now: float, *, max_age: float
) -> dict[str, Any] | EdgeRefusal:
    """Every preset that would answer this caller at this moment, once, with its lanes."""
    found = candidates(table, caller, Asked(None, lane), now, max_age=max_age)
    if isinstance(found, EdgeRefusal):
        return found
    entries: dict[str, dict[str, Any]] = {}
    for each in found.lanes:
        route = serve(found.table, found.token, each, Asked(None, lane), now)
        if isinstance(route, Route):
            entry = entries.setdefault(route.upstream.preset, _entry(route))
            entry["meta"]["lanes"].append(each.slug)
    return {"object": "list", "data": [entries[name] for name in sorted(entries)]}


def one_model(
    table: Table | None, caller: Caller, asked: Asked, now: float, *, max_age: float
) -> dict[str, Any] | EdgeRefusal:
    """The model of this name if it would answer this caller now, else why it would not."""
    route = choose(table, caller, asked, now, max_age=max_age)
    if isinstance(route, EdgeRefusal):
        return route
    entry = _entry(route)
    entry["meta"]["lanes"].append(route.lane.slug)
    return entry


def _entry(route: Route) -> dict[str, Any]:
    upstream = route.upstream
    return {
        "id": upstream.preset,
        "object": "model",
        "created": 0,
        "owned_by": "slotserve",
        "meta": {
            "aliases": [name for name in upstream.names if name != upstream.preset],
            "engine": upstream.engine,
            "loaded": True,
            "is_fallback": route.fallback is not None,
            "lanes": [],
        },
    }
