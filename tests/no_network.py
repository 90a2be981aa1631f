"""Nothing remote inside a transaction: whoever is called there from, it is refused.

What a lock or a snapshot waits for while a socket is waited for, others wait for, too; and what was
sent is not taken back when the transaction is.
"""

import socket
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest
from django.db import connection

# Everything in Python that reaches another process by a socket comes by one of these; the database
# itself does not (libpq, sqlite3).
DOORS: tuple[tuple[Any, str], ...] = (
    (socket.socket, "connect"),
    (socket.socket, "connect_ex"),
    (socket.socket, "send"),
    (socket.socket, "sendall"),
    (socket.socket, "sendto"),
    (socket, "getaddrinfo"),
)


# Whose tests are held to it: all that tells people, and what makes it due.
HELD = (
    *("test_notice", "test_webhooks", "test_push", "test_preferences", "test_maintenance"),
    *("test_booking", "test_waitlist", "test_approvals", "test_members", "test_invitations"),
    *("test_failure_notices", "test_host_notices", "test_series", "test_announcements"),
)


class NetworkInTransactionError(OSError):
    """Somebody came here with a transaction open. As of a network that is away, so that whoever
    opened a socket closes it; that it was is told by `refused`."""


def is_in_transaction() -> bool:
    """Whether this thread holds one, but that which a test runs in."""
    return any(not getattr(block, "_from_testcase", False) for block in connection.atomic_blocks)


@contextmanager
def refused() -> Iterator[list[str]]:
    """Within it each of the doors is closed to who has a transaction open; who came."""
    came: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in DOORS:
            patch.setattr(owner, name, _guarded(getattr(owner, name), came))
        yield came


def _guarded(door: Callable[..., Any], came: list[str]) -> Callable[..., Any]:
    @wraps(door)
    def guarded(*arguments: Any, **named: Any) -> Any:
        if is_in_transaction():
            came.append("".join(traceback.format_stack(limit=12)))
            raise NetworkInTransactionError(f"{door.__name__} inside a transaction")
        return door(*arguments, **named)

    return guarded
