"""What a route is: its kind, its methods, whose clients it is for, and where it names the model."""

from dataclasses import dataclass
from enum import Enum

from gateway.edge.dialects import Dialect

READ = ("GET", "HEAD")
POST = ("POST",)


class Kind(Enum):
    """What a route does."""

    FORWARD = "forward"  # to a model server; the named model chooses
    WEBSOCKET = "websocket"  # the same, kept open for messages both ways
    MODELS = "models"  # answered by the edge: what this caller can use now
    ONE_MODEL = "one model"
    HEALTH = "health"
    READY = "ready"
    METRICS = "metrics"


class ModelIn(Enum):
    """Where a request names its model."""

    JSON = "json"  # the body's member `model`
    FORM = "form"  # the form field `model` of a multipart body; a JSON body may come instead
    QUERY = "query"  # ?model=; there is no body


@dataclass(frozen=True, slots=True)
class EdgeRoute:
    """One route. `path` is the model server's own, and the route's name in metrics and records."""

    path: str
    kind: Kind
    methods: tuple[str, ...]
    dialect: Dialect = Dialect.OPENAI
    model_in: ModelIn = ModelIn.JSON


@dataclass(frozen=True, slots=True)
class Matched:
    """A request's route, with the lane or model that its path names."""

    route: EdgeRoute
    lane: str | None = None
    model: str | None = None
    passage: str | None = None  # the engine's own path, of /lanes/<slug>/upstream/…

    @property
    def upstream_path(self) -> str:
        """The path that the model server is asked for."""
        return self.route.path if self.passage is None else self.passage
