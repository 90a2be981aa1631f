"""One loop of the web process that looks, and feeds all who listen.

It looks while somebody listens: each second, and sooner when Valkey says that something was
planned. A listener has no queue: it remembers what it was told last, so a slow one is told less
often.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

import redis.asyncio
from django.conf import settings
from django.db import connection, connections
from redis.exceptions import RedisError

from gateway.edge.pauses import end_all
from slotserve.live import reading
from slotserve.live.reading import Look, Visitor
from slotserve.live.state import NOTHING, State, event, news
from wire.edges import TABLE_CHANNEL

log = logging.getLogger(__name__)
MOST_LISTENERS = 2000  # of one web process
LOOK_SECONDS, SOONEST_SECONDS = 1.0, 0.25  # between two looks: without, and with word of a change
CHECK_SECONDS = 10.0  # how soon who may not listen any more is cut off
HEARTBEAT_SECONDS = 15.0  # proxies end what is silent for a minute, pages after 40 s
AWAY_SECONDS = 2.0  # before Valkey is listened to again
OPENING = ":\n\n"  # heads are sent with the first bytes
BEAT = event("beat", {})  # an event, for pages hear nothing of comments


class Connection(Protocol):
    """What is known of the connection below a stream (wire.http_protocol)."""

    def when_stopping(self, callback: Callable[[], None] | None) -> None:
        """Call this when the server stops."""


@dataclass(slots=True, eq=False)
class _Listener:
    """One open page: who it belongs to and what it has been told."""

    visitor: Visitor
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    known: State = NOTHING
    version: int = 0  # of what it knows
    unread: int | None = None
    ending: str = ""  # why it ends

    def end(self, why: str) -> None:
        """Tell it so, and no more."""
        self.ending = self.ending or why
        self.wake.set()


class Hub:
    """Everybody who listens at this process, on the one loop that it has."""

    def __init__(self, look: Callable[..., Look] = reading.look) -> None:
        self._look = look
        self._listeners: set[_Listener] = set()
        self._state, self._version = NOTHING, 0
        self._unread: dict[int, int] = {}
        self._encoded: dict[tuple[int, bool], str] = {}  # by the version known, and whether staff
        self._checked_at = 0.0
        self._is_failing = False
        self._work: asyncio.Task[None] | None = None

    @property
    def is_full(self) -> bool:
        """Whether no more can be fed."""
        return len(self._listeners) >= MOST_LISTENERS

    async def stream(self, visitor: Visitor, below: Connection | None) -> AsyncIterator[str]:
        """Events until the client leaves, the server stops or the session is over."""
        listener = _Listener(visitor)
        self._join(listener)
        if below is not None:
            below.when_stopping(lambda: listener.end("stop"))
        try:
            yield OPENING
            while not listener.ending:
                yield self._told(listener) or BEAT
                await _within(listener.wake, HEARTBEAT_SECONDS)
            yield event("end", {"why": listener.ending})
        finally:
            if below is not None:
                below.when_stopping(None)
            self._leave(listener)

    def _join(self, listener: _Listener) -> None:
        self._listeners.add(listener)
        if self._work is None:
            self._work = asyncio.create_task(self._run())
        listener.wake.set()

    def _leave(self, listener: _Listener) -> None:
        self._listeners.discard(listener)
        if not self._listeners and self._work is not None:
            self._work.cancel()
            self._work, self._checked_at = None, 0.0
            self._become(NOTHING)  # who comes next must not be told what was

    def _told(self, listener: _Listener) -> str:
        """What is new to this one; empty: nothing."""
        listener.wake.clear()
        text = self._news(listener)
        listener.known, listener.version = self._state, self._version
        unread = self._unread.get(listener.visitor.user, 0)
        if self._state is not NOTHING and unread != listener.unread:
            listener.unread = unread
            text += event("you", {"unread": unread})
        return text

    def _news(self, listener: _Listener) -> str:
        """Made once for all who know the same."""
        is_staff = listener.visitor.is_staff
        key = (listener.version, is_staff)
        if key not in self._encoded:
            self._encoded[key] = news(listener.known, self._state, is_staff=is_staff)
        return self._encoded[key]

    async def _run(self) -> None:
        """Look for as long as anybody listens."""
        heard = asyncio.Event()
        hearing = asyncio.create_task(_hear(heard))
        thread = ThreadPoolExecutor(1, thread_name_prefix="live")  # with a connection of its own
        try:
            while True:
                looked_at = time.monotonic()
                heard.clear()
                await self._look_once(thread)
                await asyncio.sleep(SOONEST_SECONDS)
                await _within(heard, looked_at + LOOK_SECONDS - time.monotonic())
        finally:
            thread.submit(connections.close_all)  # `connection.close` would be that of this thread
            thread.shutdown(wait=False)
            await end_all([hearing])

    async def _look_once(self, thread: ThreadPoolExecutor) -> None:
        visitors = {listener.visitor for listener in self._listeners}
        is_check = time.monotonic() - self._checked_at > CHECK_SECONDS
        ask = asyncio.get_running_loop().run_in_executor
        try:
            self._take(await ask(thread, self._look_in_thread, visitors, is_check))
        except Exception:
            if not self._is_failing:  # else each second
                log.exception("pages are not told what changes")
            self._is_failing = True
            return
        self._is_failing = False
        if is_check:
            self._checked_at = time.monotonic()

    def _look_in_thread(self, visitors: Collection[Visitor], is_check: bool) -> Look:
        try:
            return self._look(visitors, is_check=is_check)
        except Exception:
            connection.close()  # it may be the connection that is broken
            raise

    def _become(self, state: State) -> None:
        self._state, self._version = state, self._version + 1
        self._encoded.clear()

    def _take(self, found: Look) -> None:
        """Make what was found the present, and wake those to whom it is news."""
        if found.state != self._state:
            self._become(found.state)
        self._unread = found.unread
        for listener in self._listeners:
            unread = found.unread.get(listener.visitor.user, 0)
            if listener.visitor in found.barred:
                listener.end("session")
            elif listener.version != self._version or listener.unread != unread:
                listener.wake.set()


async def _within(event: asyncio.Event, seconds: float) -> None:
    """Wait for it, but no longer."""
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await event.wait()
    except TimeoutError:
        pass


async def _hear(heard: asyncio.Event) -> None:
    """Hear for ever when the planner has published. A word that is lost delays a look at most."""
    while True:
        try:
            client = redis.asyncio.Redis.from_url(settings.REDIS_URL)
            async with client, client.pubsub() as words:
                await words.subscribe(TABLE_CHANNEL)
                async for _ in words.listen():
                    heard.set()
        except (RedisError, OSError):
            await asyncio.sleep(AWAY_SECONDS)


hub = Hub()
