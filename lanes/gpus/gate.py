"""Whether a lane's cards let a model server start now: what a look at the lane asks."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lanes.gpus import nvml
from lanes.gpus.outsiders import FREE_BYTES
from lanes.gpus.readings import Inventory
from lanes.gpus.room import Room, Space, find_room, need
from lanes.gpus.stored import verdict_of
from lanes.models import Gpu, Lane, Order, PresetRevision, Runtime

MEMORY_SECONDS = 10.0  # how long the memory of a server that has ended is waited for
UNCLEAR_SECONDS = 60.0  # after the order: how long unsettled readings may hold a start up
STALE_SECONDS = 30.0  # a verdict that was not renewed for so long says nothing
MEASURED_RUNS = 5


@dataclass(frozen=True, slots=True)
class Gate:
    """Open unless the cards are awaited, or there is too little room: then a sentence says why."""

    is_memory_free: bool = True
    shortage: str = ""


def ask(lane: Lane, order: Order, now: datetime) -> Gate:
    """For the order's target. Where memory cannot be read nothing is held up."""
    gpus = list(lane.gpus.select_related("state"))
    if not gpus or order.target is None:
        return Gate()
    spaces = spaces_of(gpus, nvml.read())
    if len(spaces) < len(gpus):
        return Gate()
    if _has_just_ended(lane, now) and not all(is_given_back(space) for space in spaces):
        return Gate(is_memory_free=False)
    finding = find_room(needed_by(lane, order.target), spaces)
    is_awaited = finding.room is Room.UNCLEAR and _may_wait(gpus, order, now)
    return Gate(is_memory_free=not is_awaited, shortage=finding.words)


def spaces_of(gpus: Sequence[Gpu], inventory: Inventory) -> list[Space]:
    """The cards whose memory the driver tells, with the verdict on each."""
    spaces = []
    for gpu in gpus:
        card = inventory.card(gpu.uuid)
        if card and card.used_bytes is not None and card.total_bytes is not None:
            spaces.append(Space(card.total_bytes, card.used_bytes, verdict_of(gpu)))
    return spaces


def is_given_back(space: Space) -> bool:
    """Whether no more is in use than outsiders hold and an idle card keeps."""
    return space.used_bytes <= space.verdict.outside_bytes + FREE_BYTES


def needed_by(lane: Lane, revision: PresetRevision) -> int | None:
    """Bytes of GPU memory that this revision needs on this lane, as far as is known."""
    runs = Runtime.objects.filter(lane=lane, revision=revision, gpu_bytes__isnull=False)
    measured = list(runs.order_by("-pk").values_list("gpu_bytes", flat=True)[:MEASURED_RUNS])
    return need(
        [each for each in measured if each], revision.model_file.size_bytes, revision.arguments
    )


def _has_just_ended(lane: Lane, now: datetime) -> bool:
    since = now - timedelta(seconds=MEMORY_SECONDS)
    return Runtime.objects.filter(lane=lane, ended_at__gt=since, ended_at__lte=now).exists()


def _may_wait(gpus: Sequence[Gpu], order: Order, now: datetime) -> bool:
    """Whether polls go on, so that the readings will settle, and it has not been too long."""
    if not 0 <= (now - order.ordered_at).total_seconds() < UNCLEAR_SECONDS:
        return False
    states = [getattr(gpu, "state", None) for gpu in gpus]
    fresh = now - timedelta(seconds=STALE_SECONDS)
    return all(state is not None and state.read_at > fresh for state in states)
