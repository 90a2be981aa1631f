"""Containers of ours that no attendant looks after: found, and removed.

Only lanes whose record says that their newest server was a container are asked about, so a host
without containers never asks its Docker Engine. What is here waits for the engine's answer; looks
ask by `asking`.
"""

import logging

from django.conf import settings

from lanes import records
from lanes.containers import docker_engine
from lanes.containers.docker_engine import ContainerError
from lanes.containers.order import labels, lane_filter

log = logging.getLogger(__name__)
ASK_SECONDS = 2
_clean: dict[tuple[str, int], int] = {}  # by lane: the runtime whose container is known to be gone


def may_be_left(record: records.Record | None) -> bool:
    """Whether a container of this lane may still live: until the engine has said that none does."""
    if record is None or not record.is_container:
        return False
    return _clean.get((record.installation, record.lane)) != record.runtime


def clear(lane_pk: int) -> list[str]:
    """Remove containers of a lane whose shim is gone; the names.

    Who calls holds the lane's look lock: no look starts another meanwhile. ContainerError: nobody
    knows what is left.
    """
    record = records.read_record(lane_pk)
    if record is None or record.is_shim_alive or not may_be_left(record):
        return []
    known_by = labels(record.installation, record.lane, record.generation)
    with docker_engine.connected(settings.SLOTSERVE_DOCKER_SOCKET, ASK_SECONDS) as client:
        left = docker_engine.ours(client, lane_filter(known_by))
        docker_engine.remove(left, ASK_SECONDS)
    _clean[record.installation, record.lane] = record.runtime
    names = [str(one.name) for one in left]
    if names:
        log.warning("removed lane=%s containers=%s", lane_pk, names)
    return names


def sweep() -> list[str]:
    """`clear` every lane whose look lock is held; the names. An engine that is silent ends it."""
    removed: list[str] = []
    try:
        for lane_pk in records.recorded_lanes():
            removed += clear(lane_pk)
    except ContainerError as error:
        log.warning("containers not removed reason=%s", error)
    return removed
