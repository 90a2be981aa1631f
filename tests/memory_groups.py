"""A control group of our own with little memory, where the machine lets us make one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lanes.failures.kernel import GROUPS

LIMIT = 48 * 2**20


@contextmanager
def small_group() -> Iterator[Path]:
    """The group's folder; the test is skipped where none can be made."""
    is_older = (GROUPS / "memory").is_dir()
    path = (GROUPS / "memory" if is_older else GROUPS) / f"slotserve-test-{os.getpid()}"
    try:
        path.mkdir()
        limit = path / ("memory.limit_in_bytes" if is_older else "memory.max")
        limit.write_text(str(LIMIT))
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        yield path
    finally:
        path.rmdir()
