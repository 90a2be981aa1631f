"""Ending every model server of this data folder, once the workers are gone; needs no database."""

import contextlib
import signal
import time
from collections.abc import Iterator

from django.conf import settings
from django.db import DatabaseError

from lanes import clock, host_place, processes, records
from lanes.containers import leftovers as containers
from lanes.ending import send
from lanes.models import Host, Phase, Runtime
from lanes.seeing import leftovers
from lanes.steps import KILL, SECOND_TERM, TERM
from wire.words import kept_of, said

Found = dict[processes.Stat, bool]  # processes of a lane; whether each is its shim
POLL_SECONDS = 0.05
GIVE_UP_SECONDS = 5.0  # after the last KILL: a process that hangs in the kernel
LOCK_SECONDS = 1.0
_WITH_WORKERS = said("stopped with its host's workers")


def stop_all(seconds: float) -> Iterator[str]:
    """TERM, TERM, KILL within `seconds`; one line for each server that ended, as it ends."""
    with contextlib.ExitStack() as held:
        for lane_pk in records.recorded_lanes():
            _hold_looks(held, lane_pk)  # so that no worker starts it again meanwhile
        yield from _stop(seconds)
        for name in containers.sweep():
            yield f"container removed: {name}"


def mark_ended() -> str:
    """Report what ended to the database; a sentence when it cannot be told.

    Of a server that this folder knows nothing of nothing is said: with the settings of a host and
    another folder, or on another machine, it may well live.
    """
    alive = Runtime.objects.filter(lane__host__key=settings.SLOTSERVE_HOST_KEY, ended_at=None)
    try:
        now = clock.database_now()
        host = Host.objects.filter(key=settings.SLOTSERVE_HOST_KEY).first()
        other = host_place.other_machine(host) if host else ""
        for runtime in alive:
            record = records.read_record(runtime.lane_id)
            if record is None or record.runtime != runtime.pk or other:
                continue
            if records.is_locked(runtime.lane_id) or containers.may_be_left(record):
                continue
            alive.filter(pk=runtime.pk).update(
                phase=Phase.STOPPED,
                phase_since=now,
                ended_at=now,
                reason=_WITH_WORKERS,
                words={"reason": kept_of(_WITH_WORKERS)},
            )
    except DatabaseError as error:
        return f"the database could not be told: {error}"
    return f"the host is {other}: its servers were left alone" if other else ""


def _stop(seconds: float) -> Iterator[str]:
    begun = time.monotonic()
    stages: dict[processes.Stat, int] = {}
    seen: dict[int, Found] = {}
    while living := _living():
        elapsed = time.monotonic() - begun
        if elapsed > seconds + GIVE_UP_SECONDS:
            yield from (
                f"lane {pk}: cannot be ended: {_pids(found)}" for pk, found in living.items()
            )
            return
        yield from _ended(seen, living)
        for lane_pk, found in living.items():
            seen.setdefault(lane_pk, {}).update(found)
            _signal(found, _stage(elapsed / seconds), stages)
        time.sleep(POLL_SECONDS)
    yield from _ended(seen, {})


def _ended(seen: dict[int, Found], living: dict[int, Found]) -> Iterator[str]:
    for lane_pk in [lane_pk for lane_pk in seen if lane_pk not in living]:
        yield f"lane {lane_pk}: model server ended: {_pids(seen.pop(lane_pk))}"


def _living() -> dict[int, Found]:
    """What runs of each lane, by its record and by the names in the environment."""
    found: dict[int, Found] = {}
    for process in processes.of_installation(records.installation_id()):
        names = processes.environment(process.pid)
        if names.get(processes.LANE, "").isdigit():
            lane = found.setdefault(int(names[processes.LANE]), {})
            lane[process] = processes.SHIM in names
    for lane_pk in records.recorded_lanes():
        if records.is_locked(lane_pk):
            for process in leftovers(lane_pk, records.read_record(lane_pk)):
                found.setdefault(lane_pk, {}).setdefault(process, False)
    return found


def _stage(share: float) -> int:
    """How far the signals are, when so much of the time has passed."""
    if share >= 3 / 4:
        return KILL
    return SECOND_TERM if share >= 1 / 2 else TERM


def _signal(found: Found, stage: int, stages: dict[processes.Stat, int]) -> None:
    """Signal each process once a stage. A shim ends by itself after its server."""
    for process, is_shim in found.items():
        is_spared = is_shim and (stage < KILL or len(found) > 1)
        if stages.get(process, 0) < stage and not is_spared:
            stages[process] = stage
            send(process, signal.SIGKILL if stage == KILL else signal.SIGTERM)


def _hold_looks(held: contextlib.ExitStack, lane_pk: int) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while not held.enter_context(records.look_lock(lane_pk)):
        if time.monotonic() > deadline:
            return
        time.sleep(POLL_SECONDS)


def _pids(found: Found) -> str:
    servers = [process.pid for process, is_shim in found.items() if not is_shim]
    return ", ".join(f"pid {pid}" for pid in servers or [process.pid for process in found])
