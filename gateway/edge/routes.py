"""The edge's paths. What is not listed here, or in upstream_routes.py, does not pass."""

import re
from collections.abc import Iterator
from types import MappingProxyType
from urllib.parse import unquote

from gateway.edge.dialects import Dialect
from gateway.edge.route import POST, READ, EdgeRoute, Kind, Matched, ModelIn
from gateway.edge.upstream_routes import PREFIX, passage

__all__ = ["ONE_MODEL", "EdgeRoute", "Kind", "Matched", "match"]

_LANE_PATH = re.compile(rb"/lanes/([a-z0-9][a-z0-9._-]{0,62})(/.*)", re.DOTALL)  # as lanes say it
_PASSAGE = f"{PREFIX}/".encode()
_ONE_MODEL = (b"/v1/models/", b"/models/")

# Model servers have these with and without /v1, and may answer each in its own way.
_TWINS = ("chat/completions", "completions", "embeddings", "rerank", "reranking")
# These they have only below /v1 …
_BELOW_V1 = (
    "chat/completions/input_tokens",
    "responses",
    "responses/input_tokens",
    "audio/speech",
    "images/generations",
)
_FORMS = ("audio/transcriptions", "audio/translations", "images/edits", "images/variations")
_ANTHROPIC = ("messages", "messages/count_tokens")
# … and these only without.
_BARE = ("infill", "completion", "tokenize", "detokenize", "apply-template")
_READS = ("props", "slots")


def _for_models() -> Iterator[tuple[str, EdgeRoute]]:
    """Each path that callers may use, with and without /v1, and its route."""
    for name in _TWINS:
        for path in (f"/{name}", f"/v1/{name}"):
            yield path, EdgeRoute(path, Kind.FORWARD, POST)
    for name in _BELOW_V1:
        yield from _both(name, EdgeRoute(f"/v1/{name}", Kind.FORWARD, POST))
    for name in _FORMS:
        route = EdgeRoute(f"/v1/{name}", Kind.FORWARD, POST, model_in=ModelIn.FORM)
        yield from _both(name, route)
    for name in _ANTHROPIC:
        yield from _both(name, EdgeRoute(f"/v1/{name}", Kind.FORWARD, POST, Dialect.ANTHROPIC))
    for name in _BARE:
        yield from _both(name, EdgeRoute(f"/{name}", Kind.FORWARD, POST))
    for name in _READS:
        yield from _both(name, EdgeRoute(f"/{name}", Kind.FORWARD, READ, model_in=ModelIn.QUERY))
    realtime = "/v1/realtime"
    yield realtime, EdgeRoute(realtime, Kind.WEBSOCKET, ("GET",), model_in=ModelIn.QUERY)


def _both(name: str, route: EdgeRoute) -> Iterator[tuple[str, EdgeRoute]]:
    yield f"/{name}", route
    yield f"/v1/{name}", route


ONE_MODEL = EdgeRoute("/v1/models/{id}", Kind.ONE_MODEL, READ)
_FOR_CALLERS = dict((*_for_models(), *_both("models", EdgeRoute("/v1/models", Kind.MODELS, READ))))
_FOR_OPERATORS = {
    "/health": EdgeRoute("/health", Kind.HEALTH, READ),
    "/ready": EdgeRoute("/ready", Kind.READY, READ),
    "/metrics": EdgeRoute("/metrics", Kind.METRICS, READ),
}
_OF_LANES = MappingProxyType({path.encode(): route for path, route in _FOR_CALLERS.items()})
_BY_PATH = MappingProxyType(
    {path.encode(): Matched(route) for path, route in (_FOR_CALLERS | _FOR_OPERATORS).items()}
)


def match(raw_path: bytes) -> Matched | None:
    """The route of a path as it came over the wire; None when there is none. No `..`, no `%2F`."""
    matched = _BY_PATH.get(raw_path)
    if matched is not None:
        return matched
    found = _LANE_PATH.fullmatch(raw_path)
    if found is None:
        return _one_model(raw_path, None)
    lane, path = found[1].decode(), found[2]
    route = _OF_LANES.get(path)
    if route is not None:
        return Matched(route, lane)
    if path.startswith(_PASSAGE):
        own = path[len(PREFIX) :].decode("latin-1")
        return Matched(passage(own), lane, passage=own)
    return _one_model(path, lane)


def _one_model(path: bytes, lane: str | None) -> Matched | None:
    for start in _ONE_MODEL:
        if path.startswith(start) and len(path) > len(start):
            return Matched(ONE_MODEL, lane, unquote(path[len(start) :].decode("latin-1")))
    return None
