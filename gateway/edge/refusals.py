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
        "upgrade_required": 426,
        "rate_limited": 429,  # of a token or a person
        "lane_busy": 429,  # as many requests as the lane takes, and its queue is full
        "upstream_failed": 502,
        "gpu_exclusive": 503,
        "lane_maintenance": 503,
        "model_loading": 503,
        "model_switching": 503,
        "model_failed": 503,
        "no_model_loaded": 503,
        "host_unreachable": 503,
        "gateway_starting": 503,
        "gateway_stale": 503,
        "gateway_stopping": 503,
        "gateway_busy": 503,  # of the gateway itself: request bodies
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
    lane: str = ""  # slug, where waiting for this lane can turn the refusal into an answer
    about: str = ""  # slug of the lane that refused, where waiting does not help
    allow: tuple[str, ...] = ()  # of a 405: the methods that the route takes


def refuse(
    code: str,
    words: str,
    wait: float | None = None,
    *,
    lane: str = "",
    about: str = "",
    allow: tuple[str, ...] = (),
) -> EdgeRefusal:
    """A refusal by code; `wait` is how many seconds it will last, if anybody knows."""
    status = STATUSES[code]
    retry_after = None
    if status in TELLS_WHEN:
        retry_after = max(1, math.ceil(UNKNOWN_WAIT if wait is None else wait))
    return EdgeRefusal(status, code, f"SlotServe gateway: {words}", retry_after, lane, about, allow)


def moment(seconds: float) -> str:
    """A time of the table as people write it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
