"""Who is inside: checks and counts in one step, and ends what must end.

No method here awaits, so nothing can come between a check and its count.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

from gateway.edge.clock import EdgeClock
from gateway.edge.config import EdgeConfig
from gateway.edge.endings import Running, broken_by_order, ending
from gateway.edge.exchange import Exchange
from gateway.edge.refusals import EdgeRefusal, refuse
from gateway.edge.routing import Asked, Caller, Route, choose
from gateway.edge.table import Table

_STALLED = refuse("request_timeout", "the client does not read its answer.")
_STOPPING = refuse("gateway_stopping", "this gateway is being stopped; ask again.", wait=5.0)


class Gate:
    """Admits requests by the table in force. A request counts until its connection is closed."""

    def __init__(
        self, config: EdgeConfig, clock: EdgeClock, on_change: Callable[[str], None]
    ) -> None:
        self.table: Callable[[], Table | None] = lambda: None
        self._config = config
        self._clock = clock
        self._on_change = on_change
        self._inside: dict[str, set[Exchange]] = {}
        self._counts: dict[str, int] = {}
        self.is_empty = asyncio.Event()
        self.is_empty.set()

    @property
    def in_flight(self) -> Mapping[str, int]:
        """Requests by lane whose connection to the model server may be open."""
        return self._counts

    def choose(self, caller: Caller, asked: Asked) -> Route | EdgeRefusal:
        """Where the request would go at this moment."""
        return choose(
            self.table(),
            caller,
            asked,
            self._clock.now(),
            in_flight=self._counts,
            max_age=self._config.table_max_age,
        )

    def enter(self, caller: Caller, asked: Asked) -> Exchange | EdgeRefusal:
        """Check and count. Whoever enters must leave, in a finally."""
        route = self.choose(caller, asked)
        if isinstance(route, EdgeRefusal):
            return route
        exchange = Exchange(route, lambda: self._is_still(exchange, caller, asked))
        self._inside.setdefault(route.lane.slug, set()).add(exchange)
        self._count(route.lane.slug)
        return exchange

    def leave(self, exchange: Exchange) -> None:
        """The exchange's connection is closed, or idle again."""
        exchange.clear_alarm()
        slug = exchange.route.lane.slug
        self._inside[slug].remove(exchange)
        self._count(slug)

    def review(self, exchange: Exchange) -> None:
        """Set when this exchange must end, by the table in force."""
        table = self.table()
        if table is None:
            return
        now = self._clock.now()
        route = exchange.route
        found = ending(
            table.lanes.get(route.lane.slug),
            _running(exchange),
            now,
            self._config.drain_seconds,
        )
        exchange.clear_alarm()
        if found is None:
            return
        if found.at <= now:
            exchange.stop(found.refusal)
            return
        loop = asyncio.get_running_loop()
        exchange.alarm = loop.call_later(found.at - now, self.review, exchange)

    def why_broken(self, exchange: Exchange) -> EdgeRefusal | None:
        """Why the server broke off, if it was stopped by order; None when it failed."""
        table = self.table()
        lane = table.lanes.get(exchange.route.lane.slug) if table is not None else None
        return broken_by_order(lane, _running(exchange), self._clock.now())

    def review_all(self) -> None:
        """A new table is in force."""
        for exchanges in self._inside.values():
            for exchange in exchanges:
                self.review(exchange)

    def sweep(self) -> None:
        """End exchanges whose client has not taken a byte for long: they hold a server's slot."""
        limit = self._clock.monotonic() - self._config.stalled_seconds
        for exchanges in self._inside.values():
            for exchange in exchanges:
                if exchange.writing_since is not None and exchange.writing_since < limit:
                    exchange.stop(_STALLED)

    def end_all(self) -> None:
        """The process stops: end what still runs, each in its dialect."""
        for exchanges in self._inside.values():
            for exchange in exchanges:
                exchange.stop(_STOPPING)

    def _is_still(self, exchange: Exchange, caller: Caller, asked: Asked) -> bool:
        """Whether the same request would still be sent to the same server."""
        route = self.choose(caller, replace(asked, lane=exchange.route.lane.slug))
        return isinstance(route, Route) and route.upstream == exchange.route.upstream

    def _count(self, slug: str) -> None:
        count = len(self._inside[slug])
        if count:
            self._counts[slug] = count
        else:
            self._counts.pop(slug, None)
            del self._inside[slug]
        if self._counts:
            self.is_empty.clear()
        else:
            self.is_empty.set()
        self._on_change(slug)


def _running(exchange: Exchange) -> Running:
    return Running(exchange.route.token.owner_id, exchange.route.upstream)
