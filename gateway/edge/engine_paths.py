"""Which of its own paths each engine may be asked for, as data for `upstream_routes`. Pure.

Never here: what loads, unloads, sleeps, resets, profiles or rewrites a model, runs code, reads the
host's files, or tells of the server's arguments (SGLang shows its key in /server_info).
"""

from collections.abc import Iterator

from gateway.edge.dialects import Dialect
from gateway.edge.route import POST, READ, EdgeRoute, Kind, ModelIn

PREFIX = "/upstream"
ALL = (*READ, *POST, "DELETE")
Paths = dict[str, EdgeRoute]

_LLAMA_READS = "/health /v1/health /metrics /props /slots /lora-adapters /models /v1/models"
_LLAMA_POSTS = (
    "/completion /completions /v1/completions /chat/completions /v1/chat/completions "
    "/v1/chat/completions/input_tokens /v1/responses /v1/responses/input_tokens /infill "
    "/embedding /embeddings /v1/embeddings /rerank /reranking /v1/rerank /v1/reranking "
    "/tokenize /detokenize /apply-template"
)
_MESSAGES = "/v1/messages /v1/messages/count_tokens"
_SPEECH = "/v1/audio/transcriptions"
_OPENAI = (
    "/v1/completions /v1/chat/completions /v1/responses /v1/embeddings /v1/score /v1/rerank "
    "/classify"
)
_VLLM_READS = "/health /ping /metrics /version /load /v1/models"
_VLLM_POSTS = "/tokenize /detokenize /pooling /score /rerank /v2/rerank"
_SGLANG_READS = "/health /metrics /v1/models /model_info /get_model_info"
_SGLANG_POSTS = "/generate /encode /v1/tokenize /v1/detokenize"
_COMFY_READS = "/system_stats /features /object_info /embeddings /models /history /view"
_COMFY_BOTH = "/prompt /queue"
_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,254}"


def _route(path: str, methods: tuple[str, ...], model_in: ModelIn) -> EdgeRoute:
    return EdgeRoute(PREFIX + path, Kind.FORWARD, methods, Dialect.OPENAI, model_in)


def _paths(reads: str = "", posts: str = "", forms: str = "", messages: str = "") -> Paths:
    """Routes of these paths, which stand in lists with spaces between."""
    return {
        **{path: _route(path, READ, ModelIn.QUERY) for path in reads.split()},
        **{path: _route(path, POST, ModelIn.JSON) for path in posts.split()},
        **{path: _route(path, POST, ModelIn.FORM) for path in forms.split()},
        **{
            path: EdgeRoute(PREFIX + path, Kind.FORWARD, POST, Dialect.ANTHROPIC)
            for path in messages.split()
        },
    }


def _comfy() -> Paths:
    """ComfyUI's names of its own, which it has below /api as well."""
    own = {
        **_paths(_COMFY_READS, "/interrupt", "/upload/image /upload/mask"),
        **{path: _route(path, (*READ, *POST), ModelIn.JSON) for path in _COMFY_BOTH.split()},
        "/ws": EdgeRoute(f"{PREFIX}/ws", Kind.WEBSOCKET, ("GET",), model_in=ModelIn.QUERY),
    }
    return own | {f"/api{path}": route for path, route in own.items()}


BY_ENGINE: dict[str, Paths] = {
    "llama.cpp": _paths(_LLAMA_READS, _LLAMA_POSTS, _SPEECH, _MESSAGES),
    "vllm": _paths(
        _VLLM_READS, f"{_OPENAI} {_VLLM_POSTS}", f"{_SPEECH} /v1/audio/translations", _MESSAGES
    ),
    "sglang": _paths(_SGLANG_READS, f"{_OPENAI} {_SGLANG_POSTS}", _SPEECH, _MESSAGES),
    "comfyui": _comfy(),
    "training": {"/health": _route("/health", READ, ModelIn.QUERY)},
}


def _families() -> Iterator[tuple[str, str, str, EdgeRoute]]:
    """Engine, how the list of what may be asked calls it, expression of whole paths, route."""
    for start in ("/history", "/object_info", "/models"):
        said, route = f"{start}/…", _route(f"{start}/*", READ, ModelIn.QUERY)
        yield "comfyui", said, rf"(?:/api)?{start}/{_NAME}", route
    train = _route("/train/*", ALL, ModelIn.JSON)
    yield "training", "/train/…", rf"/train(?:/{_NAME}){{0,8}}", train


FAMILIES = tuple(_families())
