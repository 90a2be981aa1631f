"""Fixtures of the tests of the planner's service."""

import pytest

from lanes import clock
from tests.planning_cast import Clock


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The database's clock, held still at noon until a test plans at another minute."""
    stopped = Clock()
    monkeypatch.setattr(clock, "database_now", lambda: stopped.now)
    return stopped
