"""Servers that die after they were ready: real processes, looked at as their host does."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models import F
from pytest_django import Settings

from lanes import supervisor
from lanes.backoff import retry_wait
from lanes.models import Lane, LaneEvent, PresetFailure, Runtime
from tests import builders, fleet

pytest_plugins = ["tests.fleet_fixtures"]
pytestmark = [pytest.mark.process, pytest.mark.django_db]


class Loop:
    """A lane whose server dies when it is told to."""

    def __init__(self, folder: Path) -> None:
        self.lane: Lane = builders.lane()
        self._die = folder / "die"
        fleet.order(self.lane, fleet.preset("dies_after_ready"))

    def be_ready(self) -> None:
        fleet.look_until(self.lane, fleet.is_phase(self.lane, "ready"))

    def die(self, *, after: float = 0.0) -> None:
        """Let it die as if it had been ready for so many seconds."""
        runtime = Runtime.objects.get(lane=self.lane, ended_at=None)
        ready_at = (runtime.ready_at or runtime.started_at) - timedelta(seconds=after)
        Runtime.objects.filter(pk=runtime.pk).update(ready_at=ready_at)
        self._die.touch()
        fleet.look_until(self.lane, lambda: Runtime.objects.get(pk=runtime.pk).ended_at is not None)
        self._die.unlink()

    def wait(self, seconds: float) -> None:
        """As if the last failure were longer ago by so much."""
        moved = F("failed_at") - timedelta(seconds=seconds)
        PresetFailure.objects.filter(lane=self.lane).update(failed_at=moved)

    @property
    def failure(self) -> PresetFailure:
        return PresetFailure.objects.get(lane=self.lane)

    def starts_again(self) -> bool:
        """Whether ten more looks begin another server."""
        before = Runtime.objects.count()
        for _ in range(10):
            supervisor.look(self.lane.pk)
        return Runtime.objects.count() > before


@pytest.fixture
def loop(fleet_settings: Settings) -> Loop:
    return Loop(Path(fleet_settings.SLOTSERVE_DATA))


def test_a_server_that_dies_soon_after_being_ready_backs_off_longer_each_time(loop: Loop) -> None:
    for count in (1, 2, 3):
        loop.be_ready()
        loop.die()
        assert loop.failure.count == count
        assert not loop.starts_again()
        loop.wait(retry_wait(count) - 5)
        assert not loop.starts_again()
        loop.wait(5)
    loop.be_ready()
    assert Runtime.objects.count() == 4


def test_such_a_failure_has_its_cause_and_one_beginning(loop: Loop) -> None:
    loop.be_ready()
    loop.die()
    first = loop.failure.since
    loop.wait(30)
    loop.be_ready()
    loop.die()
    assert loop.failure.failure_kind == "gpu_memory"
    assert loop.failure.failure_line == "CUDA error: out of memory"
    assert loop.failure.since == first
    told = LaneEvent.objects.filter(lane=loop.lane, kind="failed").first()
    assert told is not None
    assert told.sentence.endswith("Lower -c. Next try in 60 s at the earliest.")


def test_one_that_was_ready_for_a_minute_restarts_at_once_and_then_backs_off(loop: Loop) -> None:
    loop.be_ready()
    loop.die(after=61)
    assert loop.failure.count == 0
    loop.be_ready()  # at once
    loop.die(after=61)
    assert loop.failure.count == 1
    assert not loop.starts_again()


def test_one_that_dies_each_few_minutes_is_one_failure_for_an_hour(loop: Loop) -> None:
    loop.be_ready()
    loop.die(after=61)
    loop.be_ready()
    loop.die(after=61)
    first = loop.failure.since
    loop.wait(30)
    loop.be_ready()
    loop.die(after=61)
    assert (loop.failure.count, loop.failure.since) == (1, first)
    PresetFailure.objects.update(since=F("since") - timedelta(hours=1))
    loop.wait(30)
    loop.be_ready()
    loop.die(after=61)
    assert loop.failure.since is not None
    assert first is not None
    assert loop.failure.since > first
