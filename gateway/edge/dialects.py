"""The shapes of errors: OpenAI's and Anthropic's, as answers and as events in a stream."""

from enum import Enum
from types import MappingProxyType
from typing import Any

import orjson

from gateway.edge.refusals import EdgeRefusal

_OPENAI_TYPES = MappingProxyType(
    {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
)
_ANTHROPIC_TYPES = MappingProxyType(
    {
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        408: "timeout_error",
        409: "conflict_error",
        413: "request_too_large",
        429: "rate_limit_error",
        503: "overloaded_error",
    }
)


class Dialect(Enum):
    """Whose clients a route is for."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


def error_body(dialect: Dialect, refusal: EdgeRefusal) -> bytes:
    """The refusal as a JSON answer."""
    return orjson.dumps(_shape(dialect, refusal))


def error_event(dialect: Dialect, refusal: EdgeRefusal) -> bytes:
    """The refusal as an event in a stream whose headers are out."""
    name = b"event: error\n" if dialect is Dialect.ANTHROPIC else b""
    return name + b"data: " + orjson.dumps(_shape(dialect, refusal)) + b"\n\n"


def _shape(dialect: Dialect, refusal: EdgeRefusal) -> dict[str, Any]:
    kind = "server_error" if refusal.status >= 500 else "invalid_request_error"
    if dialect is Dialect.ANTHROPIC:
        fallback = "api_error" if refusal.status >= 500 else kind
        kind = _ANTHROPIC_TYPES.get(refusal.status, fallback)
        error = {"type": kind, "message": refusal.words, "code": refusal.code}
        return {"type": "error", "error": error}
    kind = _OPENAI_TYPES.get(refusal.status, kind)
    return {"error": {"message": refusal.words, "type": kind, "code": refusal.code, "param": None}}
