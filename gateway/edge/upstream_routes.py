"""The pass-through /lanes/<slug>/upstream/…: which of its own paths each engine may be asked for.

Paths are compared byte for byte as they came, so no escape, `..` or second slash leads anywhere
else. Never here: tools, cors-proxy, loading and unloading of models, saving and restoring of
slots, writes to props or lora-adapters.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from gateway.edge.dialects import Dialect
from gateway.edge.refusals import EdgeRefusal, refuse
from gateway.edge.route import POST, READ, EdgeRoute, Kind, ModelIn

PREFIX = "/upstream"
OTHER = EdgeRoute(f"{PREFIX}/other", Kind.FORWARD, (*READ, *POST), model_in=ModelIn.QUERY)
_LLAMA_READS = (
    "/health",
    "/v1/health",
    "/metrics",
    "/props",
    "/slots",
    "/lora-adapters",
    "/models",
    "/v1/models",
)
_LLAMA_POSTS = (
    "/completion",
    "/completions",
    "/v1/completions",
    "/chat/completions",
    "/v1/chat/completions",
    "/v1/chat/completions/input_tokens",
    "/v1/responses",
    "/v1/responses/input_tokens",
    "/infill",
    "/embedding",
    "/embeddings",
    "/v1/embeddings",
    "/rerank",
    "/reranking",
    "/v1/rerank",
    "/v1/reranking",
    "/tokenize",
    "/detokenize",
    "/apply-template",
)
_LLAMA_MESSAGES = ("/v1/messages", "/v1/messages/count_tokens")
_LLAMA_FORMS = ("/v1/audio/transcriptions",)


def _passages(
    paths: Iterable[str],
    methods: tuple[str, ...],
    model_in: ModelIn,
    dialect: Dialect = Dialect.OPENAI,
) -> Iterator[tuple[str, EdgeRoute]]:
    for path in paths:
        yield path, EdgeRoute(PREFIX + path, Kind.FORWARD, methods, dialect, model_in)


ALLOWED: Mapping[str, Mapping[str, EdgeRoute]] = MappingProxyType(
    {
        "llama.cpp": MappingProxyType(
            {
                **dict(_passages(_LLAMA_READS, READ, ModelIn.QUERY)),
                **dict(_passages(_LLAMA_POSTS, POST, ModelIn.JSON)),
                **dict(_passages(_LLAMA_MESSAGES, POST, ModelIn.JSON, Dialect.ANTHROPIC)),
                **dict(_passages(_LLAMA_FORMS, POST, ModelIn.FORM)),
            }
        )
    }
)
_OF_ANY = MappingProxyType(
    {path: route for each in ALLOWED.values() for path, route in each.items()}
)


def passage(path: str) -> EdgeRoute:
    """The route of an engine's own path; OTHER when no engine has it on its list.

    Which engine runs is known only once the lane is chosen: `refuse_passage` asks again then.
    """
    return _OF_ANY.get(path, OTHER)


def refuse_passage(engine: str, method: str, path: str) -> EdgeRefusal | None:
    """404, which lists what may be asked, unless this engine may be asked for this path so."""
    allowed = ALLOWED.get(engine, {})
    route = allowed.get(path)
    if route is not None and method in route.methods:
        return None
    listed = ", ".join(f"{'/'.join(one.methods)} {name}" for name, one in sorted(allowed.items()))
    words = f"of this lane's model server ({engine}) these may be asked for: {listed or 'none'}."
    return refuse("route_not_found", words)
