"""Ports of this process alone: test runs at once, and the workers of one, get blocks of their own.

All lie below those that systems give to connections (`ip_local_port_range`, 32768 and more): a port
of those, found free, may be a connection's own by the time that a server listens on it.
"""

import contextlib
import functools
import itertools
import socket
from collections.abc import Iterator

SIZE = 200
BLOCKS = range(10_000, 18_000, SIZE)  # then come those of an installation's own
_held: list[socket.socket] = []  # each block's first port, as long as this process lives


def block() -> range:
    """The ports of a further block; others on this machine pass it over."""
    for first in BLOCKS:
        with contextlib.suppress(OSError):
            _held.append(socket.create_server(("127.0.0.1", first)))
            return range(first + 1, first + SIZE)
    raise AssertionError(f"all {len(BLOCKS)} blocks of ports are taken")


@functools.cache
def of_model_servers() -> range:
    """Those that installations under test may give to model servers."""
    return block()


def free_port() -> int:
    """One that nobody listens on, and that was not given for long."""
    tried = itertools.islice(_others(), SIZE - 1)
    found = next((port for port in tried if _is_free(port)), None)
    assert found is not None, "somebody listens on each port of this process"
    return found


@functools.cache
def _others() -> Iterator[int]:
    return itertools.cycle(block())


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
