"""Containers of ours that no attendant looks after: found, and removed.

Only lanes whose record says that their newest server was a container are asked about, so a host
without containers never asks its Docker Engine.
"""

import logging
from collections.abc import Iterable

import docker
from django.conf import settings
from docker.models.containers import Container

from lanes import records
from lanes.containers import docker_engine
from lanes.containers.docker_engine import ContainerError
from lanes.containers.order import LANE_LABEL, filter_of

log = logging.getLogger(__name__)
ASK_SECONDS = 5
_clean: dict[int, int] = {}  # by lane: the runtime whose container is known to be gone


def has_left(record: records.Record | None) -> bool:
    """Whether a container of this lane may still live; an engine that does not answer: perhaps."""
    if record is None or not record.is_container or _clean.get(record.lane) == record.runtime:
        return False
    try:
        with docker_engine.connected(settings.SLOTSERVE_DOCKER_SOCKET, ASK_SECONDS) as client:
            left = _of(client, {record.lane})
    except ContainerError as error:
        log.warning("containers not seen lane=%s reason=%s", record.lane, error)
        return True
    if not left:
        _clean[record.lane] = record.runtime
    return bool(left)


def remove(record: records.Record | None) -> list[str]:
    """Remove what is left of this lane; the names. One that stays is tried at a later look."""
    if record is None or not record.is_container:
        return []
    return _remove({record.lane})


def sweep() -> list[str]:
    """Remove containers of lanes whose shim is gone; the names."""
    found = (records.read_record(lane_pk) for lane_pk in records.recorded_lanes())
    dead = [r for r in found if r and r.is_container and not r.is_shim_alive]
    asked = {r.lane for r in dead if _clean.get(r.lane) != r.runtime}
    if not asked:
        return []
    removed = _remove(asked)
    if not removed:
        _clean.update({r.lane: r.runtime for r in dead})
    return removed


def _remove(lanes: Iterable[int]) -> list[str]:
    try:
        with docker_engine.connected(settings.SLOTSERVE_DOCKER_SOCKET, ASK_SECONDS) as client:
            left = _of(client, lanes)
            names = [str(one.name) for one in left]
            docker_engine.remove(left)
    except ContainerError as error:
        log.warning("containers not removed reason=%s", error)
        return []
    if names:
        log.warning("removed containers=%s", names)
    return names


def _of(client: docker.DockerClient, lanes: Iterable[int]) -> list[Container]:
    """Our containers of these lanes."""
    wanted = {str(lane_pk) for lane_pk in lanes}
    ours = docker_engine.ours(client, filter_of(records.installation_id()))
    return [one for one in ours if one.labels.get(LANE_LABEL) in wanted]
