"""One admitted request: its deadline, its connection, and its end."""

import asyncio
import math
from collections.abc import Callable

import aiohttp

from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routing import Route


class MovedError(Exception):
    """Between the admission and the first byte the answer to "where to" has changed."""


class SentError(aiohttp.ClientError):
    """aiohttp's session wants to open a WebSocket a second time: it broke, or was redirected."""


class Exchange:
    """From the count to the closing of the connection. `stop` may come at any moment."""

    def __init__(self, route: Route, is_still_right: Callable[[], bool]) -> None:
        self.route = route
        self.limit = asyncio.timeout(None)
        self.alarm: asyncio.TimerHandle | None = None
        self.review_at = math.inf  # by the table's clock: when its end must be looked for again
        self.stopped_by: EdgeRefusal | None = None
        self.writing_since: float | None = None  # monotonic: the client has not taken a chunk yet
        self.has_slot = False  # of the model server: to be given back
        self.began = 0.0  # monotonic
        self.is_complete = False  # the answer was read to its end: the connection is idle again
        self._is_open = False
        self._is_still_right = is_still_right
        self._transport: asyncio.Transport | None = None

    @property
    def was_sent(self) -> bool:
        """Whether the model server may have got a byte of it."""
        return self._transport is not None

    def connected(self, transport: asyncio.Transport) -> None:
        """Just before the first byte, and only once: ask again. Raises MovedError, SentError.

        Who was stopped in this very turn still writes, and is cut at its next await.
        """
        if self.was_sent:
            raise SentError
        if not self._is_still_right():
            raise MovedError
        self._transport = transport

    def open(self) -> None:
        """The block under `limit` has begun; a stop that came before ends it now."""
        self._is_open = True
        if self.stopped_by is not None:
            self._end()

    def stop(self, why: EdgeRefusal) -> None:
        """Give the request up now; the block under `limit` ends with TimeoutError."""
        if self.stopped_by is None and not self.is_complete:
            self.stopped_by = why
            if self._is_open:
                self._end()

    def clear_alarm(self) -> None:
        """Forget when it was to end."""
        if self.alarm is not None:
            self.alarm.cancel()
            self.alarm = None

    def close(self) -> None:
        """Close the connection at once, unless it has become idle: no flush, no waiting."""
        self._is_open = False
        if not self.is_complete and self._transport is not None:
            self._transport.abort()

    def _end(self) -> None:
        self.limit.reschedule(asyncio.get_running_loop().time())
