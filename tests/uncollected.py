"""A while in which nobody looks for garbage: neither Python nor our own thread."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from slotserve import garbage


@contextmanager
def uncollected() -> Iterator[None]:
    """Until the block is over; then as before."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        with patch.object(garbage, "look", lambda: None):
            yield
    finally:
        if was_on:
            gc.enable()
