"""Whether a worker of this host lives: it holds a lock in the data folder for as long.

The kernel gives the lock back whatever ends the worker. Model servers and shims do not inherit it.
"""

import contextlib
import fcntl
import os
from typing import Any

from celery.signals import celeryd_after_setup
from django.conf import settings

from lanes import records, ticks

NAME = "worker.lock"
_held: list[int] = []  # until this process ends


@celeryd_after_setup.connect
def hold(instance: Any, **_: Any) -> None:
    """Take it, when this worker serves the host's queue; several may, on their way to one."""
    if ticks.host_queue(settings.SLOTSERVE_HOST_KEY) in instance.app.amqp.queues.consume_from:
        _held.append(take())


def take() -> int:
    """The descriptor that holds it."""
    held = os.open(records.folder() / NAME, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(held, fcntl.LOCK_SH)
    with contextlib.suppress(OSError):  # a full disk: the lock says enough
        os.truncate(held, 0)
        os.pwrite(held, str(os.getpid()).encode(), 0)
    return held


def living_worker() -> str:
    """Its pid as text, or "unknown"; empty: no worker of this host lives."""
    try:
        lock = os.open(records.folder() / NAME, os.O_RDWR)
    except FileNotFoundError:
        return ""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(lock, 20, 0).decode() or "unknown"
    else:
        return ""
    finally:
        os.close(lock)
