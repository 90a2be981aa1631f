"""Several deeds that begin at the same moment, as those of several workers do."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from django.db import connections


def at_once(*deeds: Callable[[], object]) -> list[object]:
    """What each answers; all begin together, each on a connection of its own."""
    barrier = Barrier(len(deeds), timeout=30)

    def do(deed: Callable[[], object]) -> object:
        try:
            barrier.wait()
            return deed()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(deeds)) as pool:
        return list(pool.map(do, deeds))
