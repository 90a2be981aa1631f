"""Containers of ours that no attendant looks after: found, and removed.

Only lanes whose record says that their newest server was a container are asked about, so a host
without containers never asks its Docker Engine.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import docker
from django.conf import settings
from docker.models.containers import Container

from lanes import records
from lanes.containers import docker_engine
from lanes.containers.docker_engine import ContainerError
from lanes.containers.order import labels, lane_filter

log = logging.getLogger(__name__)
ASK_SECONDS = 2
SILENCE_SECONDS = 5.0
_clean: dict[int, int] = {}  # by lane: the runtime whose container is known to be gone


@dataclass(slots=True)
class _Silence:
    until: float = 0.0  # monotonic


_silence = _Silence()


def has_left(record: records.Record | None) -> bool:
    """Whether a container of this lane may still live; an engine that does not answer: perhaps."""
    if record is None or not record.is_container or _clean.get(record.lane) == record.runtime:
        return False
    try:
        with _asked() as client:
            left = _of(client, record)
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
    try:
        with _asked() as client:
            left = _of(client, record)
            docker_engine.remove(left, ASK_SECONDS)
    except ContainerError as error:
        log.warning("containers not removed lane=%s reason=%s", record.lane, error)
        return []
    names = [str(one.name) for one in left]
    if names:
        log.warning("removed lane=%s containers=%s", record.lane, names)
    return names


def sweep() -> list[str]:
    """Remove containers of lanes whose shim is gone; the names. No look meanwhile starts others."""
    removed: list[str] = []
    for lane_pk in records.recorded_lanes():
        if _is_dead(records.read_record(lane_pk)):
            with records.look_lock(lane_pk) as is_ours:
                record = records.read_record(lane_pk) if is_ours else None
                if _is_dead(record) and has_left(record):
                    removed += remove(record)
    return removed


def _is_dead(record: records.Record | None) -> bool:
    """Whether it was a container's, which nobody looks after and which may live."""
    if record is None or not record.is_container or record.is_shim_alive:
        return False
    return _clean.get(record.lane) != record.runtime


@contextmanager
def _asked() -> Iterator[docker.DockerClient]:
    """A connection; an engine that has not answered is left alone for a while, as looks wait."""
    if time.monotonic() < _silence.until:
        raise ContainerError("the Docker Engine has not answered a moment ago")
    try:
        with docker_engine.connected(settings.SLOTSERVE_DOCKER_SOCKET, ASK_SECONDS) as client:
            yield client
    except ContainerError:
        _silence.until = time.monotonic() + SILENCE_SECONDS
        raise


def _of(client: docker.DockerClient, record: records.Record) -> list[Container]:
    """Our containers of the record's lane."""
    known_by = labels(record.installation, record.lane, record.generation)
    return docker_engine.ours(client, lane_filter(known_by))
