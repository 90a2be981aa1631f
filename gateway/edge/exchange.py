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
    """From the count to the closing of the connection. `stop` may come at any moment.

    `with exchange:` is the block that a stop ends: it is left at its next await, without an
    exception, and `stopped_by` says why. A stop that came before ends it, too.
    """

    def __init__(self, route: Route, is_still_right: Callable[[], bool]) -> None:
        self.route = route
        self.alarm: asyncio.TimerHandle | None = None
        self.review_at = math.inf  # by the table's clock: when its end must be looked for again
        self.stopped_by: EdgeRefusal | None = None
        self.writing_since: float | None = None  # monotonic: the client has not taken a chunk yet
        self.waiting_since: float | None = None  # monotonic: the server has not said a word since
        self.has_slot = False  # of the model server: to be given back
        self.began = 0.0  # monotonic
        self.is_complete = False  # the answer was read to its end: the connection is idle again
        self._task: asyncio.Task[object] | None = None  # in the block
        self._cancels = 0  # of the task, from elsewhere, before the block
        self._is_cut = False
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

    def __enter__(self) -> None:
        """The block has begun."""
        self._task = asyncio.current_task()
        self._cancels = self._task.cancelling() if self._task is not None else 0
        if self.stopped_by is not None:
            self._end()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        """The block is over; only our own cancellation ends here."""
        task, self._task = self._task, None
        if not self._is_cut or task is None:
            return False
        return task.uncancel() <= self._cancels and kind is asyncio.CancelledError

    def stop(self, why: EdgeRefusal) -> None:
        """Give the request up now."""
        if self.stopped_by is None and not self.is_complete:
            self.stopped_by = why
            if self._task is not None:
                self._end()

    def clear_alarm(self) -> None:
        """Forget when it was to end."""
        if self.alarm is not None:
            self.alarm.cancel()
            self.alarm = None

    def close(self) -> None:
        """Close the connection at once, unless it has become idle: no flush, no waiting."""
        if not self.is_complete and self._transport is not None:
            self._transport.abort()

    def _end(self) -> None:
        """From the loop: a task that cancels itself would be cut behind the block."""
        asyncio.get_running_loop().call_soon(self._cut)

    def _cut(self) -> None:
        if self._task is not None and not self._is_cut:
            self._is_cut = True
            self._task.cancel()
