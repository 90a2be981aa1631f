"""The line between a worker and its parent: a socket pair.

Up goes SERVES, once. Down go STOP (finish what runs) and NOW (end it). Each sees the other's death
as the end of the line; a worker then ends at once, because the next parent's workers have the same
edge ids, and two reports of one edge would hide what runs at the other.
"""

import asyncio
import os
import socket
from collections.abc import Callable

SERVES = b"+"
STOP, NOW = b"s", b"n"
_ORPHANED = 70  # exit status


class ParentLine:
    """A worker's end of the line."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def open(self, stop: Callable[[], None], now: Callable[[], None]) -> None:
        """Tell the parent that we serve; from now on do what it says."""
        self._sock.setblocking(False)
        self._sock.send(SERVES)
        asyncio.get_running_loop().add_reader(self._sock, self._hear, stop, now)

    def _hear(self, stop: Callable[[], None], now: Callable[[], None]) -> None:
        words = self._sock.recv(16)
        if not words:
            os._exit(_ORPHANED)
        if STOP in words:
            stop()
        if NOW in words:
            now()
