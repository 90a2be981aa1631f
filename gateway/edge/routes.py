"""The edge's paths. What is not listed here does not pass."""

import re
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from urllib.parse import unquote

from gateway.edge.dialects import Dialect

_LANE_PATH = re.compile(r"/lanes/([a-z0-9][a-z0-9._-]{0,62})(/.*)")  # as lanes name themselves
_ONE_MODEL = "/v1/models/"


class Kind(Enum):
    """What a route does."""

    FORWARD = "forward"  # to a model server; the body's `model` chooses
    MODELS = "models"  # answered by the edge: what this caller can use now
    ONE_MODEL = "one model"
    HEALTH = "health"
    READY = "ready"
    METRICS = "metrics"


@dataclass(frozen=True, slots=True)
class EdgeRoute:
    """One route: what it does, for whose clients, by which methods."""

    path: str  # without the lane's prefix: the model server's own path
    kind: Kind
    methods: tuple[str, ...]
    dialect: Dialect = Dialect.OPENAI


@dataclass(frozen=True, slots=True)
class Matched:
    """A request's route, with the lane or model that its path names."""

    route: EdgeRoute
    lane: str | None = None
    model: str | None = None


_READ = ("GET", "HEAD")
_FOR_CALLERS = (
    EdgeRoute("/v1/chat/completions", Kind.FORWARD, ("POST",)),
    EdgeRoute("/v1/completions", Kind.FORWARD, ("POST",)),
    EdgeRoute("/v1/embeddings", Kind.FORWARD, ("POST",)),
    EdgeRoute("/v1/messages", Kind.FORWARD, ("POST",), Dialect.ANTHROPIC),
    EdgeRoute("/v1/messages/count_tokens", Kind.FORWARD, ("POST",), Dialect.ANTHROPIC),
    EdgeRoute("/v1/models", Kind.MODELS, _READ),
)
_FOR_OPERATORS = (
    EdgeRoute("/health", Kind.HEALTH, _READ),
    EdgeRoute("/ready", Kind.READY, _READ),
    EdgeRoute("/metrics", Kind.METRICS, _READ),
)
ONE_MODEL = EdgeRoute("/v1/models/{id}", Kind.ONE_MODEL, _READ)
_BY_PATH = MappingProxyType({route.path: route for route in (*_FOR_CALLERS, *_FOR_OPERATORS)})
_OF_LANES = frozenset(route.path for route in _FOR_CALLERS)


def match(raw_path: bytes) -> Matched | None:
    """The route of a path as it came over the wire; None when there is none. No `..`, no `%2F`."""
    path = raw_path.decode("latin-1")
    route = _BY_PATH.get(path)
    if route is not None:
        return Matched(route)
    lane = None
    found = _LANE_PATH.fullmatch(path)
    if found is not None:
        lane, path = found.groups()
    if path.startswith(_ONE_MODEL) and len(path) > len(_ONE_MODEL):
        return Matched(ONE_MODEL, lane, unquote(path.removeprefix(_ONE_MODEL)))
    return Matched(_BY_PATH[path], lane) if path in _OF_LANES else None
