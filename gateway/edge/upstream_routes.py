"""The pass-through /lanes/<slug>/upstream/…: which of its own paths each engine may be asked for.

Paths are compared as they came, byte for byte or with names of plain letters, so no escape, `..` or
second slash leads anywhere else. What each engine has is in `engine_paths`.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from gateway.edge.engine_paths import BY_ENGINE, FAMILIES, PREFIX
from gateway.edge.refusals import EdgeRefusal, refuse
from gateway.edge.route import POST, READ, EdgeRoute, Kind, ModelIn

__all__ = ["ALLOWED", "OTHER", "PREFIX", "passage", "refuse_passage"]

OTHER = EdgeRoute(f"{PREFIX}/other", Kind.FORWARD, (*READ, *POST), model_in=ModelIn.QUERY)
ALLOWED: Mapping[str, Mapping[str, EdgeRoute]] = MappingProxyType(
    {engine: MappingProxyType(paths) for engine, paths in BY_ENGINE.items()}
)


def _of_any() -> Mapping[str, EdgeRoute]:
    """Each path that some engine has, with the methods of all that have it; a body may name the
    model where one takes a body."""
    found: dict[str, EdgeRoute] = {}
    for path, route in (item for each in ALLOWED.values() for item in each.items()):
        other = found.get(path, route)
        methods = tuple(dict.fromkeys((*other.methods, *route.methods)))
        found[path] = replace(other if "POST" in other.methods else route, methods=methods)
    return MappingProxyType(found)


_OF_ANY = _of_any()
_FAMILIES = tuple((engine, re.compile(text), route) for engine, _, text, route in FAMILIES)


def passage(path: str) -> EdgeRoute:
    """The route of an engine's own path; OTHER when no engine has it on its list.

    Which engine runs is known only once the lane is chosen: `refuse_passage` asks again then.
    """
    return _OF_ANY.get(path) or _widened(_of_family(path)) or OTHER


def refuse_passage(engine: str, method: str, path: str) -> EdgeRefusal | None:
    """404, which lists what may be asked, unless this engine may be asked for this path so."""
    route = ALLOWED.get(engine, {}).get(path) or _of_family(path, engine)
    if route is not None and method in route.methods:
        return None
    words = f"of this lane's model server ({engine}) these may be asked for: {_listed(engine)}."
    return refuse("route_not_found", words)


def _of_family(path: str, engine: str | None = None) -> EdgeRoute | None:
    """The route of a path with a name in it, of this engine or of any."""
    for owner, expression, route in _FAMILIES:
        if engine in (None, owner) and expression.fullmatch(path):
            return route
    return None


def _widened(route: EdgeRoute | None) -> EdgeRoute | None:
    """With the methods of a path that no engine has: on other engines it is just that."""
    if route is None:
        return None
    return replace(route, methods=tuple(dict.fromkeys((*route.methods, *OTHER.methods))))


def _listed(engine: str) -> str:
    named = [(path, route) for path, route in ALLOWED.get(engine, {}).items()]
    named += [(said, route) for owner, said, _, route in FAMILIES if owner == engine]
    known = sorted((path, "/".join(route.methods)) for path, route in named)
    return ", ".join(f"{methods} {path}" for path, methods in known) or "none"
