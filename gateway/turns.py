"""Taking a step one at a time in a process; of those that wait, one takes it for all."""

from collections.abc import Callable
from threading import Lock


class Turns:
    """Calls `step`, which asks the whole question anew, without overlap between threads.

    Planners that overlap in one process only slow each other down, and all but one of them lose.
    A caller that finds another waiting returns at once: what that one reads will be newer than
    anything this caller knows.
    """

    def __init__(self, step: Callable[[], object]) -> None:
        self._step = step
        self._running = Lock()
        self._waiting = Lock()

    def take(self) -> bool:
        """Wait for the step that runs, then take it; False when another waits already."""
        if not self._waiting.acquire(blocking=False):
            return False
        try:
            self._running.acquire()
        finally:
            self._waiting.release()
        try:
            self._step()
            return True
        finally:
            self._running.release()
