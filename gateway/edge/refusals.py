"""What the edge answers in place of a model server: status, code, words, when to try again."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType

STATUSES = MappingProxyType(
    {
        "invalid_request_error": 400,
        "invalid_api_key": 401,
        "gpu_reserved": 403,
        "model_not_found": 404,
        "lane_not_found": 404,
        "route_not_found": 404,
        "method_not_allowed": 405,
        "request_timeout": 408,
        "model_not_loaded": 409,
        "request_too_large": 413,
        "rate_limited": 429,
        "upstream_failed": 502,
        "gpu_exclusive": 503,
        "model_loading": 503,
        "model_switching": 503,
        "model_failed": 503,
        "no_model_loaded": 503,
        "gateway_starting": 503,
        "gateway_stale": 503,
        "gateway_stopping": 503,
    }
)
TELLS_WHEN = frozenset({403, 429, 503})
UNKNOWN_WAIT = 10.0  # seconds, where nothing says when it will be better


@dataclass(frozen=True, slots=True)
class EdgeRefusal:
    """One refusal. `retry_after` is in whole seconds, at least one, on every 403, 429 and 503."""

    status: int
    code: str
    words: str
    retry_after: int | None = None


def refuse(code: str, words: str, wait: float | None = None) -> EdgeRefusal:
    """A refusal by code; `wait` is how many seconds it will last, if anybody knows."""
    status = STATUSES[code]
    retry_after = None
    if status in TELLS_WHEN:
        retry_after = max(1, math.ceil(UNKNOWN_WAIT if wait is None else wait))
    return EdgeRefusal(status, code, f"SlotServe gateway: {words}", retry_after)


def moment(seconds: float) -> str:
    """A time of the table as people write it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
