"""What tests with cards share: a lane on GPU-a, a process that is nobody's, polls in time."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from lanes.gpus import polling
from lanes.models import Gpu, GpuState, Lane, LaneEvent, Order
from tests import builders
from tests.conftest import Moment

GIB = 2**30
POLL = timedelta(seconds=polling.POLL_SECONDS)


def gpu_lane(uuid: str = "GPU-a", slug: str = "big") -> Lane:
    """A lane of the test host on this card."""
    lane = builders.lane(slug)
    card = {"host": lane.host, "name": "NVIDIA GeForce RTX 4090", "memory_bytes": 24 * GIB}
    lane.gpus.add(Gpu.objects.create(uuid=uuid, **card))
    return lane


@contextmanager
def stranger() -> Iterator[int]:
    """The pid of a process that no lane owns."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        yield child.pid
    finally:
        child.kill()
        child.communicate()


def poll(moment: Moment, times: int = 1) -> None:
    """Poll the test host's cards so often, five seconds apart."""
    for _ in range(times):
        moment.now += POLL
        assert polling.poll_if_due(builders.host())


def state() -> GpuState:
    """What is said of GPU-a."""
    return GpuState.objects.get(gpu__uuid="GPU-a")


def outsiders() -> list[int]:
    """The pids that are taken for outsiders on GPU-a."""
    return [holder["pid"] for holder in state().verdict["outsiders"]]


def sentences(lane: Lane, kind: str) -> list[str]:
    """What was told of the lane."""
    return list(LaneEvent.objects.filter(lane=lane, kind=kind).values_list("sentence", flat=True))


def slot(lane: Lane, now: datetime, **columns: object) -> Order:
    """An order for a slot in progress; by default one of the whole GPU, of the owner."""
    values: dict[str, object] = {
        "rule": 1,
        "booking_id_for": 7,
        "booking_start_for": now,
        "owner_id_for": builders.person("owner").pk,
        "sentence": "test",
        "ordered_at": now,
        "decided_at": now,
    }
    return Order.objects.create(lane=lane, **values | columns)
