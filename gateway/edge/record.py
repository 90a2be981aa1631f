"""What is recorded of a request: who, where, how long, how much. Never what was said."""

from gateway.edge.call import Call
from gateway.edge.table import TokenEntry
from gateway.edge.token_counts import TokenCounts
from wire.usage import Usage

CLIENT_GONE_STATUS = 499
_GENERATING = ("/completions", "/completion", "/responses", "/messages", "/infill")


def usage_of(
    call: Call, *, request_id: str, at: float, arrived: float, ended: float
) -> Usage | None:
    """The record of a finished request; None for a caller whom nobody knows.

    `at` is its arrival by the database's clock, `arrived` and `ended` are monotonic.
    """
    token = token_of(call)
    if token is None:
        return None
    answer, route = call.answer, call.exchange.route if call.exchange else None
    counts = counts_of(call)
    first = answer.first_byte_at
    return Usage(
        request_id=request_id,
        at=at,
        route=call.matched.route.path,
        status=answer.status or CLIENT_GONE_STATUS,
        duration_ms=(ended - arrived) * 1000,
        owner_id=token.owner_id,
        token_id=token.token_id,
        lane=route.lane.slug if route else _refused_at(call),
        booking_id=route.grant.booking_id if route and route.grant else None,
        preset=route.upstream.preset if route else "",
        code=answer.refusal.code if answer.refusal else "",
        first_byte_ms=(first - arrived) * 1000 if first is not None else None,
        bytes_in=call.bytes_in,
        bytes_out=answer.bytes_out,
        is_aborted=call.is_gone,
        queue_ms=call.queue_seconds * 1000,
        prompt_tokens=counts.prompt,
        completion_tokens=counts.completion,
        cached_tokens=counts.cached,
        is_estimated=counts.is_estimated,
    )


def _refused_at(call: Call) -> str:
    """The lane that refused it, or for which it waited when its client left; none is said: ""."""
    refusal = call.answer.refusal
    if refusal is None and call.turn is not None:
        refusal = call.turn.last
    return (refusal.lane or refusal.about) if refusal is not None else ""


def counts_of(call: Call) -> TokenCounts:
    """The tokens that its answer tells of.

    A stream that was cut, or whose server counts none, is estimated: servers send an event for
    each token, and a few more. The prompt of such a request stays unknown.
    """
    answer = call.answer
    counts = answer.tail.counts()
    is_text = call.matched.route.path.endswith(_GENERATING) and answer.status == 200
    if counts.completion is not None or not (is_text and answer.tail.events):
        return counts
    return counts._replace(completion=answer.tail.events, is_estimated=True)


def token_of(call: Call) -> TokenEntry | None:
    """Whose request it is: an admitted one keeps its token, though that is revoked since."""
    table, digest = call.parts.holder.table, call.caller.digest
    token = table.tokens.get(digest) if table is not None and digest is not None else None
    return call.exchange.route.token if token is None and call.exchange is not None else token
