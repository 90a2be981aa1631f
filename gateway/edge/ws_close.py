"""How a WebSocket ends: its close code and a short reason. Pure."""

from types import MappingProxyType

from gateway.edge.refusals import EdgeRefusal

OURS = "SlotServe gateway: "  # how our words begin
NORMAL, GOING_AWAY, NO_CODE, TOO_BIG = 1000, 1001, 1005, 1009
POLICY, FAILED, RESTART, TRY_AGAIN = 1008, 1011, 1012, 1013
LONGEST_REASON = 123  # bytes: a control frame has no room for more
_CODES = MappingProxyType(
    {
        "gateway_stopping": GOING_AWAY,
        "model_switching": RESTART,
        "upstream_failed": FAILED,
    }
)
_OTHERS_NEVER_SENT = frozenset({1004, 1005, 1006, 1015})


def close_of(refusal: EdgeRefusal) -> tuple[int, str]:
    """Why the gateway ends a session: the refusal's own code leads the reason."""
    fallback = TRY_AGAIN if refusal.status in {429, 503} else POLICY
    words = refusal.words.removeprefix(OURS)
    return _CODES.get(refusal.code, fallback), short(f"{refusal.code}: {words}")


def passed_on(code: int | None) -> int:
    """The close code that one side gave, as the other side may be told it."""
    is_sent = code is not None and (1000 <= code <= 1014 or 3000 <= code <= 4999)
    if code is None or not is_sent or code in _OTHERS_NEVER_SENT:
        return NORMAL
    return code


def short(reason: str) -> str:
    """The reason, cut to whole characters where it is too long."""
    return reason.encode()[:LONGEST_REASON].decode("utf-8", "ignore")
