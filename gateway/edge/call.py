"""One request on its way to a model server, and the parts of the edge that it meets."""

from dataclasses import dataclass

from gateway.edge.answer import Answer
from gateway.edge.body import Receive
from gateway.edge.clock import EdgeClock
from gateway.edge.config import EdgeConfig
from gateway.edge.exchange import Exchange
from gateway.edge.gate import Gate
from gateway.edge.headers import Headers
from gateway.edge.holder import TableHolder
from gateway.edge.limits import Limits
from gateway.edge.queue import Turn
from gateway.edge.routes import Matched
from gateway.edge.routing import Caller
from gateway.edge.slots import Slots
from gateway.edge.spool import SpoolBudget
from gateway.edge.upstreams import ServerPool
from wire.http_protocol import GuardedProtocol


@dataclass(frozen=True, slots=True)
class Parts:
    """What a call works with."""

    config: EdgeConfig
    clock: EdgeClock
    holder: TableHolder
    gate: Gate
    pool: ServerPool
    slots: Slots
    limits: Limits
    spools: SpoolBudget


@dataclass(slots=True)
class Call:
    """A request on its way, and what will be recorded of it."""

    parts: Parts
    matched: Matched
    method: str
    headers: Headers
    caller: Caller
    lane: str | None
    receive: Receive
    answer: Answer
    connection: GuardedProtocol | None = None  # of a request; a WebSocket's session hears itself
    has_whole_body: bool = False  # it has come already
    query: bytes = b""  # holds no key: it goes up as it came
    bytes_in: int = 0
    turn: Turn | None = None  # while it asks to be let in
    exchange: Exchange | None = None  # the last one
    queue_seconds: float = 0.0  # waited in the lane's queue
    is_gone: bool = False

    @property
    def target(self) -> str:
        """The path and query that the model server is asked for."""
        path = self.matched.upstream_path
        return f"{path}?{self.query.decode('ascii')}" if self.query else path
