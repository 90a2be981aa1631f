"""Looks at lanes and moves their servers towards their orders. It alone starts and signals them.

A look is short and safe to skip, repeat and overlap: it waits for no load, drain or stop, but asks
to be called again soon while something is on its way.
"""

import logging

from django.conf import settings

from lanes import (
    acting,
    barrier,
    clock,
    ending,
    host_reports,
    log_keeping,
    records,
    ticks,
    watch,
)
from lanes.acting import Again
from lanes.catalogue import scanning
from lanes.containers import asking as containers
from lanes.gpus import polling
from lanes.lifecycle import LOADING_LOOK, MOVING_LOOK, next_step
from lanes.models import Host, Lane
from lanes.seeing import Sight, glance, lanes_to_glance_at, limits, see
from lanes.steps import KeepWaiting, Nothing

log = logging.getLogger(__name__)
MOST_STEPS = 8  # in one look; a stop, a report and a start are four
AGAIN_SECONDS = 0.05  # when another look of this lane is under way
NEAR_SECONDS = 5.0  # what is further off is left to the beat
LONGEST_DELAY = 0.5  # a follow-up that waits longer would stand in the way of a sooner one


def look(lane_pk: int) -> None:
    """See the lane, do what is to be done, ask for the next look while it is in transition.

    Two looks of one lane never overlap on a host: the second asks for another and leaves.
    """
    lane = Lane.objects.select_related("host").filter(pk=lane_pk).first()
    if lane is None or lane.host.key != settings.SLOTSERVE_HOST_KEY:
        return
    with records.look_lock(lane.pk) as is_ours:
        next_look = _converge(lane) if is_ours else _after_another(lane)
    if next_look is not None and next_look <= NEAR_SECONDS:
        delay = min(max(next_look, 0.01), LONGEST_DELAY)
        ticks.request_look(lane.pk, lane.host.key, delay=delay)


def _after_another(lane: Lane) -> float | None:
    """Seconds until the look that is under way has ended; None: it waits for a silent engine."""
    return None if containers.trouble(records.read_record(lane.pk)) else AGAIN_SECONDS


def look_host(host_key: str) -> None:
    """Look at every lane of the host, and end servers of lanes that are no more."""
    host = Host.objects.filter(key=host_key).first()
    if host is None or host_key != settings.SLOTSERVE_HOST_KEY:
        return
    watch.reap()
    barrier.remember_edges(barrier.read_reports())
    _poll_gpus(host)
    _look_at_lanes(host)
    _sweep_strangers()
    containers.sweep()
    if host_reports.report_seen(host):
        if host.unreachable_since is not None:
            ticks.request_plan()  # it is back: have that told
        log_keeping.tidy_all()
        ticks.request_probe(host.key)  # whether that is due asks a file system, which may hang
    if scanning.is_due():
        ticks.request_scan(host.key)


def _look_at_lanes(host: Host) -> None:
    """One that fails to be looked at does not stop the others."""
    lanes, now = lanes_to_glance_at(host), clock.database_now()
    for lane in lanes:
        try:
            if not _is_at_rest(glance(lane, now)):
                look(lane.pk)
        except Exception:
            log.exception("look failed lane=%s", lane.pk)


def _is_at_rest(sight: Sight | None) -> bool:
    """Whether its server is the one that is wanted, is known and is watched."""
    if sight is None or sight.record is None or sight.runtime is None:
        return False
    is_known = sight.record.pid == sight.runtime.pid and watch.is_watched(sight.record.shim_pid)
    return is_known and isinstance(
        next_step(sight.wanted, sight.seen, limits(), sight.now), Nothing
    )


def _converge(lane: Lane) -> float | None:
    """Step after step until one needs time; seconds to the next look, None when the host's
    own next look is soon enough."""
    for _ in range(MOST_STEPS):
        sight = see(lane)
        if sight is None:
            return None
        _keep_track(sight)
        step = next_step(sight.wanted, sight.seen, limits(), sight.now)
        if isinstance(step, Nothing):
            return None
        if isinstance(step, KeepWaiting):
            return step.next_look
        log.debug("lane=%s step=%s", lane.slug, step)
        again = acting.act(step, sight)
        if again is Again.WITH_OTHERS:
            return None
        if again is Again.SOON:
            return MOVING_LOOK
    return LOADING_LOOK


def _keep_track(sight: Sight) -> None:
    """Report which process it is, and be woken when it ends: also after another worker began it."""
    acting.report_identity(sight)
    record = sight.record
    if record is not None and record.is_shim_alive:
        watch.adopt(sight.lane.pk, sight.lane.host.key, record.shim_pid, record.shim_ticks)


def _sweep_strangers() -> None:
    """End servers of lanes that the database does not have (deleted, or another database)."""
    recorded = records.recorded_lanes()
    known = set(Lane.objects.filter(pk__in=recorded).values_list("pk", flat=True))
    for lane_pk in recorded:
        if lane_pk not in known and records.is_locked(lane_pk):
            ending.sweep(lane_pk)


def _poll_gpus(host: Host) -> None:
    """Lanes are looked at whatever becomes of their cards."""
    try:
        polling.poll_if_due(host)
    except Exception:
        log.exception("GPUs not polled host=%s", host.key)
