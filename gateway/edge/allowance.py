"""What a token and its owner may use in a minute: asked once per request, charged at its end."""

from gateway.edge.call import Call
from gateway.edge.limits import has_limits
from gateway.edge.queue import Turn
from gateway.edge.record import counts_of, token_of
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.route import ModelIn
from gateway.edge.slot_routes import needs_slot

_BYTES_OF_A_TOKEN = 4  # of a prompt, where nobody has counted


async def within_limits(call: Call, turn: Turn) -> EdgeRefusal | None:
    """Count the request, unless it is refused for what comes before limits."""
    token = token_of(call)
    if token is None or not has_limits(token):
        return None
    gate = call.parts.gate
    found = gate.routes(turn)
    if isinstance(found, EdgeRefusal) and not gate.waiters.may_wait(turn, found):
        return found
    return await call.parts.limits.admit(token)


def charge(call: Call) -> None:
    """Count the answer's tokens; estimated where the server has not told them."""
    token = token_of(call)
    if token is None or (token.tokens_per_minute is None and token.owner_tokens_per_minute is None):
        return
    tokens = tokens_of(call)
    if tokens:
        call.parts.limits.charge(token, tokens)


def tokens_of(call: Call) -> int:
    """Of prompt and answer. A text whose prompt nobody has counted: a token for 4 bytes of it."""
    if call.exchange is None or not call.exchange.was_sent:
        return 0
    counts = counts_of(call)
    is_unknown = counts.is_estimated or not call.answer.has_started
    guess = call.bytes_in // _BYTES_OF_A_TOKEN if is_unknown and _is_text(call) else 0
    prompt = guess if counts.prompt is None else counts.prompt
    return prompt + (counts.completion or 0)


def _is_text(call: Call) -> bool:
    route = call.matched.route
    return route.model_in is ModelIn.JSON and needs_slot(call.method, call.matched)
