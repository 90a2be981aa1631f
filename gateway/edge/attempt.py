"""One request at the gate and at its model server: admitted, forwarded, ended."""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from gateway.edge.admission import Stay, admit, stay_quietly
from gateway.edge.allowance import charge, within_limits
from gateway.edge.call import Call
from gateway.edge.exchange import Exchange, MovedError
from gateway.edge.forward import Parcel, forward, upstream_failed
from gateway.edge.gate import UNREACHABLE
from gateway.edge.holder import TableHolder
from gateway.edge.prefer import patience_of
from gateway.edge.queue import Turn
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routing import Asked
from gateway.edge.slot_routes import needs_slot
from gateway.edge.spool import SMALL_BYTES, Spool
from gateway.edge.telling import Teller, asks_for_stream
from gateway.edge.upstreams import NotSentError, Server
from gateway.edge.waiting import CLIENT_GONE

logger = logging.getLogger(__name__)
ATTEMPTS = 3  # while not a byte has been sent
PATIENT_ATTEMPTS = 1000  # of a request that waits: one a second, until its time is over
_REFRESH_SECONDS = 1.0
_AVOID_SECONDS = 1.0  # a server that could not be reached, before a waiting request tries again
_LAST_WORD_SECONDS = 2.0  # for a client that does not read to hear why it was ended
_UNREACHABLE = upstream_failed(UNREACHABLE)
Work = Callable[[Exchange, Server], Awaitable[EdgeRefusal | None]]


async def serve_watched(call: Call, asked: Asked, body: Spool) -> None:
    """Serve it while its client stays. No count and no connection is left behind."""
    turn = call.turn = turn_of(call, asked)
    parcel = Parcel(call.method, call.target, call.headers, body, call.matched.passage)
    stay: Stay = stay_quietly
    if turn.patience.for_load > 0:
        is_stream = partial(_asks_for_stream, body)
        stay = Teller(call.answer, call.parts.gate.waiters, is_stream).stay
    if call.connection is not None:
        call.connection.when_gone(partial(client_left, call))
    try:
        work = partial(forward, parcel=parcel, answer=call.answer)
        await _end(call, await attempt(call, turn, work, stay))
    finally:
        if call.connection is not None:
            call.connection.when_gone(None)
        charge(call)


def _asks_for_stream(body: Spool) -> bool:
    """A large body, which it would take long to parse, waits without a word."""
    return body.length <= SMALL_BYTES and asks_for_stream(body.whole() or b"")


def turn_of(call: Call, asked: Asked) -> Turn:
    """What it asks for, and how long it waits for it."""
    config = call.parts.config
    patience = patience_of(call.headers, call.parts.gate.waiters.patience, config.wait_most_seconds)
    if patience.applied is not None:
        call.answer.add((b"preference-applied", b"wait=%d" % patience.applied))
    return Turn(call.caller, asked, needs_slot(call.method, call.matched), patience)


def client_left(call: Call) -> None:
    """Stop its waiting, or its exchange."""
    call.is_gone = True
    if call.turn is not None:
        call.parts.gate.waiters.forsake(call.turn)
    if call.exchange is not None:
        call.exchange.stop(CLIENT_GONE)


async def attempt(
    call: Call, turn: Turn, work: Work, stay: Stay = stay_quietly
) -> EdgeRefusal | None:
    """Try until a byte has been sent: a server that moved or is gone may have a successor.

    None when the work is done, else why not, for the caller to tell the client.
    """
    refusal = await within_limits(call, turn)
    if refusal is not None:
        return refusal
    most = PATIENT_ATTEMPTS if turn.patience.for_load else ATTEMPTS
    for number in itertools.count(1):
        exchange = await _admit(call, turn, stay)
        if isinstance(exchange, EdgeRefusal):
            return exchange
        ended = await _once(call, turn, exchange, work)
        if ended is not _UNREACHABLE or number >= most or call.is_gone:
            return ended
    return None


async def _admit(call: Call, turn: Turn, stay: Stay) -> Exchange | EdgeRefusal:
    """Let it in, now or when its turn comes."""
    found = await admit(call.parts.gate, turn, stay)
    if turn.since is not None:
        call.queue_seconds = call.parts.clock.monotonic() - turn.since
    if isinstance(found, Exchange):
        call.exchange = found
    return found


async def _once(call: Call, turn: Turn, exchange: Exchange, work: Work) -> EdgeRefusal | None:
    """One try, from the admission to the end of the count. _UNREACHABLE: nothing was sent."""
    gate = call.parts.gate
    try:
        refusal = await _exchange(call, exchange, work)
    except MovedError:
        return _UNREACHABLE
    except NotSentError as error:
        slug = exchange.route.lane.slug
        logger.warning("lane %s: its model server cannot be reached (%s)", slug, error)
        turn.avoided, turn.is_host_away = exchange.route.upstream, error.is_host_away
        turn.avoided_until = call.parts.clock.monotonic() + _AVOID_SECONDS
        refusal = _UNREACHABLE
    finally:
        gate.leave(exchange)
    if refusal is None or refusal.code != _UNREACHABLE.code:
        return refusal
    await _refresh(call.parts.holder)  # an order may have been quicker than its table
    return refusal if refusal is _UNREACHABLE else gate.why_broken(exchange) or refusal


async def _exchange(call: Call, exchange: Exchange, work: Work) -> EdgeRefusal | None:
    """One attempt, counted by its caller: None when the work is done, else why not."""
    upstream = exchange.route.upstream
    server = call.parts.pool.server(exchange.route.lane.slug, upstream)
    if server is None:
        return upstream_failed("the gateway has no key for this model server.")
    call.parts.gate.review(exchange)
    if call.is_gone:
        exchange.stop(CLIENT_GONE)
    return await work(exchange, server)


async def _end(call: Call, refusal: EdgeRefusal | None) -> None:
    """The connection to the model server is closed or idle; tell the client how it went."""
    if call.is_gone or call.answer.is_finished:
        return
    limit = call.parts.config.stalled_seconds if refusal is None else _LAST_WORD_SECONDS
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limit):
            await (call.answer.finish() if refusal is None else call.answer.fail(refusal))


async def _refresh(holder: TableHolder) -> None:
    """Read the table now, if Valkey answers soon."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_REFRESH_SECONDS):
            await holder.refresh()
