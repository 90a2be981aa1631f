"""What is recorded of a request: who, where, how long, how much. Never what was said."""

from gateway.edge.call import Call
from gateway.edge.table import Table, TokenEntry
from wire.usage import Usage

CLIENT_GONE_STATUS = 499


def usage_of(
    call: Call, *, request_id: str, at: float, arrived: float, ended: float
) -> Usage | None:
    """The record of a finished request; None for a caller whom nobody knows.

    `at` is its arrival by the database's clock, `arrived` and `ended` are monotonic.
    """
    token = _token(call.parts.holder.table, call.caller.digest)
    if token is None:
        return None
    answer, route = call.answer, call.exchange.route if call.exchange else None
    prompt, completion = answer.tail.tokens()
    first = answer.first_byte_at
    return Usage(
        request_id=request_id,
        at=at,
        route=call.matched.route.path,
        status=answer.status or CLIENT_GONE_STATUS,
        duration_ms=(ended - arrived) * 1000,
        owner_id=token.owner_id,
        token_id=token.token_id,
        lane=route.lane.slug if route else "",
        booking_id=route.grant.booking_id if route and route.grant else None,
        preset=route.upstream.preset if route else "",
        code=answer.refusal.code if answer.refusal else "",
        first_byte_ms=(first - arrived) * 1000 if first is not None else None,
        bytes_in=call.bytes_in,
        bytes_out=answer.bytes_out,
        is_aborted=call.is_gone,
        prompt_tokens=prompt,
        completion_tokens=completion,
    )


def _token(table: Table | None, digest: str | None) -> TokenEntry | None:
    return table.tokens.get(digest) if table is not None and digest is not None else None
