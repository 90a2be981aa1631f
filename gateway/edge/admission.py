"""How one request gets in: at once, or when its turn comes, or not at all."""

import asyncio
from collections.abc import Awaitable, Callable

from gateway.edge.exchange import Exchange
from gateway.edge.gate import Gate
from gateway.edge.queue import Turn, Unsure
from gateway.edge.refusals import EdgeRefusal

Stay = Callable[[Turn, asyncio.Event], Awaitable[None]]


async def stay_quietly(_: Turn, ended: asyncio.Event) -> None:
    """Wait without a word."""
    await ended.wait()


async def admit(gate: Gate, turn: Turn, stay: Stay = stay_quietly) -> Exchange | EdgeRefusal:
    """Check and count, waiting for it as long as the turn has patience.

    An exchange must be left, in a finally. A cancelled request gives its place up. `stay` lasts
    until the event is set; the queue never waits for it.
    """
    gate.waiters.catch_up()
    found = gate.enter(turn)
    is_doubtful = isinstance(found, Unsure)
    if isinstance(found, Unsure):
        found = await gate.waiters.ask(turn, found)
    if isinstance(found, Exchange):
        return found
    refusal = gate.waiters.join(turn, found)
    if refusal is not None:
        return refusal
    if is_doubtful:
        gate.waiters.doubt(turn)
    return await _stay(gate, turn, stay)


async def _stay(gate: Gate, turn: Turn, stay: Stay) -> Exchange | EdgeRefusal:
    ended = asyncio.Event()
    turn.on_end = ended.set
    try:
        await stay(turn, ended)
        return gate.waiters.take(turn)
    finally:
        gate.waiters.abandon(turn)
