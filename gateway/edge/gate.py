"""Who is inside: checks and counts in one step, and ends what must end.

No method here awaits, so nothing can come between a check and its count.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from gateway.edge import verdicts
from gateway.edge.clock import EdgeClock
from gateway.edge.config import EdgeConfig
from gateway.edge.endings import Running, broken_by_order, ending
from gateway.edge.exchange import Exchange
from gateway.edge.paces import Paces
from gateway.edge.queue import Turn, Unsure
from gateway.edge.refusals import EdgeRefusal, refuse
from gateway.edge.routing import Asked, Caller, Route, candidates, choose, routes_to
from gateway.edge.slots import Slots
from gateway.edge.table import Table
from gateway.edge.waiting import NOTHING_SAID, STOPPING, Waiters

logger = logging.getLogger(__name__)
_STALLED = refuse("request_timeout", "the client does not read its answer.")
AHEAD_SECONDS = 3.0  # more than lies between two sweeps
SILENT = "the model server has been silent for too long."
UNREACHABLE = "the model server cannot be reached."


class Gate:
    """Admits requests by the table in force. A request counts until its connection is closed."""

    def __init__(
        self,
        config: EdgeConfig,
        clock: EdgeClock,
        on_change: Callable[[str], None],
        slots: Slots,
    ) -> None:
        self.table: Callable[[], Table | None] = lambda: None
        self._config = config
        self._clock = clock
        self._slots = slots
        self._paces = Paces()
        self.waiters = Waiters(config, clock, self._slots, self)
        self._on_change = on_change
        self._inside: dict[str, set[Exchange]] = {}
        self._counts: dict[str, int] = {}
        self._is_over = False
        self.is_empty = asyncio.Event()
        self.is_empty.set()

    @property
    def in_flight(self) -> Mapping[str, int]:
        """Requests by lane whose connection to the model server may be open."""
        return self._counts

    @property
    def waiting(self) -> Mapping[str, int]:
        """Requests by lane that wait for it: for a slot, a load or a switch."""
        return self.waiters.queue.waiting

    @property
    def admitted_after_wait(self) -> Mapping[str, int]:
        """Requests by lane, since the start, that were let in after they had waited."""
        return self.waiters.admitted

    def table_in_force(self) -> Table | None:
        """The route table."""
        return self.table()

    def pace(self, slug: str) -> float | None:
        """How many seconds it usually takes until one of the lane's slots becomes free."""
        table = self.table()
        lane = table.lanes.get(slug) if table is not None else None
        slots = lane.upstream.slots if lane is not None and lane.upstream is not None else None
        return self._paces.seconds(slug, slots or 1)

    def choose(self, caller: Caller, asked: Asked) -> Route | EdgeRefusal:
        """Where the request would go at this moment."""
        if self._clock.is_in_doubt:
            return verdicts.clock_was_set()
        route = choose(
            self.table(),
            caller,
            asked,
            self._clock.now(),
            in_flight=self._counts,
            max_age=self._config.table_max_age,
        )
        return self._told(route) if isinstance(route, EdgeRefusal) else route

    def known(self, caller: Caller, asked: Asked) -> EdgeRefusal | None:
        """Why nothing can be asked at this moment: by whom, and of which lane."""
        if self._clock.is_in_doubt:
            return verdicts.clock_was_set()
        max_age = self._config.table_max_age
        found = candidates(self.table(), caller, asked, self._clock.now(), max_age=max_age)
        return found if isinstance(found, EdgeRefusal) else None

    def enter(
        self, turn: Turn, told: Mapping[str, bool] = NOTHING_SAID
    ) -> Exchange | EdgeRefusal | Unsure:
        """Check and count. Whoever enters must leave, in a finally; `admit` calls it.

        `told` is what other edges have said of lanes' slots; True is one that is held already.
        """
        routes = self.routes(turn) if not self._is_over else STOPPING
        if isinstance(routes, EdgeRefusal):
            turn.wanted = ()
            return routes
        if len(routes) > 1:
            routes.sort(key=lambda route: self._order(route, told))
        for route in routes:
            is_free = self._is_free(route, turn, told)
            if is_free:
                return self._admit(route, turn)
            if is_free is None and route.upstream.slots is not None:
                return Unsure(route.lane.slug, route.upstream.slots)
        turn.wanted = tuple([route.lane.slug for route in routes])
        return self._busy(routes)

    def routes(self, turn: Turn) -> list[Route] | EdgeRefusal:
        """Where it may go now, slots or not; what could not be reached a moment ago is left out.

        Who waits goes on waiting while nobody knows the time.
        """
        if self._clock.is_in_doubt:
            return turn.last if turn.lane and turn.last else verdicts.clock_was_set()
        found = routes_to(
            self.table(),
            turn.caller,
            turn.asked,
            self._clock.now(),
            max_age=self._config.table_max_age,
        )
        if isinstance(found, EdgeRefusal):
            return self._told(found)
        if turn.avoided is None:
            return found
        if self._clock.monotonic() >= turn.avoided_until:
            return found
        kept = [route for route in found if route.upstream != turn.avoided]
        return kept or self._why_unreachable(found[0], turn)

    def _told(self, refusal: EdgeRefusal) -> EdgeRefusal:
        """With the page to book at, where anybody has said where that is."""
        url = self._config.book_url
        return verdicts.with_place(refusal, url) if url else refusal

    def leave(self, exchange: Exchange) -> None:
        """The exchange's connection is closed, or idle again; its slot goes to who waits."""
        exchange.clear_alarm()
        slug = exchange.route.lane.slug
        self._inside[slug].remove(exchange)
        self._count(slug)
        if exchange.has_slot:
            self._slots.give(slug)
            self._paces.add(slug, self._clock.monotonic() - exchange.began)
            if self.waiters.queue:
                self.waiters.freed(slug)

    def review(self, exchange: Exchange) -> None:
        """Set when this exchange must end, by the table in force."""
        table = self.table()
        if table is None:
            return
        now = self._clock.now()
        route = exchange.route
        lane = table.lanes.get(route.lane.slug)
        exchange.clear_alarm()
        exchange.review_at = route.until - AHEAD_SECONDS
        if lane is route.lane and now < exchange.review_at and not (lane.draining or lane.cut):
            return  # nobody else's booking begins before `until`; the sweep asks again in time
        exchange.review_at = math.inf
        closures = table.closures.get(route.lane.slug, ())
        drain = self._config.drain_seconds
        found = ending(lane, _running(exchange), now, drain, closures)
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
        self.waiters.walk()

    def sweep(self) -> None:
        """Set ends that are near; end exchanges whose client or server has been still for long."""
        self.waiters.walk()
        now, monotonic = self._clock.now(), self._clock.monotonic()
        stalled = monotonic - self._config.stalled_seconds
        silent = monotonic - self._config.answer_seconds
        for exchanges in self._inside.values():
            for exchange in exchanges:
                if exchange.review_at <= now:
                    self.review(exchange)
                if exchange.writing_since is not None and exchange.writing_since < stalled:
                    exchange.stop(_STALLED)
                if exchange.waiting_since is not None and exchange.waiting_since < silent:
                    self._end_silent(exchange)

    def _end_silent(self, exchange: Exchange) -> None:
        if exchange.stopped_by is not None:
            return
        slug = exchange.route.lane.slug
        logger.warning("lane %s: %s", slug, SILENT)
        exchange.stop(refuse("upstream_failed", SILENT, about=slug))

    def end_all(self) -> None:
        """The process stops: end what still runs, each in its dialect, and admit no more."""
        self._is_over = True
        self.waiters.close()
        for exchanges in self._inside.values():
            for exchange in exchanges:
                exchange.stop(STOPPING)

    def _order(self, route: Route, told: Mapping[str, bool]) -> tuple[bool, int]:
        """A slot that is held first, then the fewest requests."""
        slug = route.lane.slug
        return not told.get(slug, False), self._counts.get(slug, 0)

    def _is_free(self, route: Route, turn: Turn, told: Mapping[str, bool]) -> bool | None:
        """Whether a slot is its own now; None: other edges must be asked."""
        slots, slug = route.upstream.slots, route.lane.slug
        if slots is None or not turn.needs_slot:
            return True
        if self.waiters.queue and self.waiters.queue.is_wanted(slug, turn.number):
            return False
        said = told.get(slug)
        return self._slots.take_now(slug, slots) if said is None else said

    def _admit(self, route: Route, turn: Turn) -> Exchange:
        table = self.table()
        stale_at = table.confirmed_at + self._config.table_max_age if table else 0.0
        until = min(route.until, stale_at)

        def is_still_right() -> bool:
            # The same table, and no booking has begun or ended: what was chosen is still right.
            is_same = self.table() is table and self._clock.now() < until
            is_known = is_same and not self._clock.is_in_doubt
            return is_known or self._is_still(route, turn.caller, turn.asked)

        exchange = Exchange(route, is_still_right)
        exchange.has_slot = turn.needs_slot and route.upstream.slots is not None
        exchange.began = self._clock.monotonic()
        turn.wanted = ()
        self._inside.setdefault(route.lane.slug, set()).add(exchange)
        self._count(route.lane.slug)
        return exchange

    def _busy(self, routes: list[Route]) -> EdgeRefusal:
        """All slots are taken: the lane where the fewest wait, and when one of them moves up."""
        waiting = self.waiting
        slug = min((route.lane.slug for route in routes), key=lambda each: waiting.get(each, 0))
        return verdicts.lane_busy(slug, waiting.get(slug, 0), self.pace(slug))

    def _why_unreachable(self, route: Route, turn: Turn) -> EdgeRefusal:
        if turn.is_host_away:
            return verdicts.host_unreachable(route.lane.slug)
        running = Running(route.token.owner_id, route.upstream)
        found = broken_by_order(route.lane, running, self._clock.now())
        return found or refuse("upstream_failed", UNREACHABLE, lane=route.lane.slug)

    def _is_still(self, route: Route, caller: Caller, asked: Asked) -> bool:
        """Whether the same request would still be sent to the same server."""
        found = self.choose(caller, replace(asked, lane=route.lane.slug))
        return isinstance(found, Route) and found.upstream == route.upstream

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
