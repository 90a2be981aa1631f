"""What a host reports: its runtimes, loads and failures, and sentences about them for people.

Every report is fenced: it is written only over the row it was decided from, and never over one that
has ended.
"""

import logging
from datetime import datetime

from django.db import transaction

from lanes import ticks
from lanes.backoff import retry_wait
from lanes.engines.base import ServerFacts
from lanes.events import LONGEST, add_event
from lanes.models import Lane, LaneEvent, LoadRecord, Order, Phase, PresetFailure, Runtime
from lanes.seeing import Sight
from lanes.steps import TERM

log = logging.getLogger(__name__)


def report(sight: Sight, runtime: Runtime, **changes: object) -> bool:
    """Change the runtime's row if it is still the one that was seen; False: somebody was first."""
    if "phase" in changes and changes["phase"] != runtime.phase:
        changes["phase_since"] = sight.now
    rows = Runtime.objects.filter(
        pk=runtime.pk,
        ended_at=None,
        generation=runtime.generation,
        phase=runtime.phase,
        signals_sent=runtime.signals_sent,
    )
    if not rows.update(**changes):
        log.info("report came too late lane=%s runtime=%s", sight.lane, runtime.pk)
        return False
    if "phase" in changes or "generation" in changes:
        ticks.plan_soon()
    return True


def tell(lane: Lane, at: datetime, kind: str, sentence: str) -> None:
    """Add a sentence to the lane's history."""
    log.info("lane=%s %s: %s", lane.slug, kind, sentence)
    add_event(lane, at, kind, sentence)


def tell_once(lane: Lane, at: datetime, kind: str, sentence: str) -> None:
    """Add a sentence unless it is the lane's last one already."""
    last = LaneEvent.objects.filter(lane=lane).order_by("-pk").first()
    if last is None or (last.kind, last.sentence) != (kind, sentence[:LONGEST]):
        tell(lane, at, kind, sentence)


def report_ready(sight: Sight, runtime: Runtime, facts: ServerFacts) -> bool:
    """Ready: report it and what it can do; record the load, whose length is the process's age."""
    told = {
        "slots": facts.slots,
        "context_length": facts.context_length,
        "capabilities": list(facts.capabilities),
    }
    with transaction.atomic():
        if not report(sight, runtime, phase=Phase.READY, ready_at=sight.now, **told):
            return False
        _record_load(sight, runtime, succeeded=True)
        words = f"{runtime.revision.preset} is ready after {sight.seen.age:.1f} s"
        tell(sight.lane, sight.now, "ready", words)
    return True


def report_drain(sight: Sight, runtime: Runtime, until: datetime) -> bool:
    """Draining: running requests may end until then."""
    with transaction.atomic():
        if not report(sight, runtime, phase=Phase.DRAINING, drain_until=until):
            return False
        words = f"{runtime.revision.preset} takes no new requests; running ones may finish"
        tell(sight.lane, sight.now, "draining", words)
    return True


def report_stopping(sight: Sight, runtime: Runtime, reason: str) -> bool:
    """Stopping from now on, before the first signal: a worker that dies between is made up for."""
    changes = {"phase": Phase.STOPPING, "term_at": sight.now, "signals_sent": TERM}
    with transaction.atomic():
        if not _is_still_ordered(sight):
            return False
        if not report(sight, runtime, **changes, reason=reason[:LONGEST]):
            return False
        if runtime.phase != Phase.STOPPING:
            words = f"stopping {runtime.revision.preset}" + (f": {reason}" if reason else "")
            tell(sight.lane, sight.now, "stopping", words)
    return True


def report_stopped(sight: Sight, runtime: Runtime, reason: str) -> bool:
    """Gone, and nobody is to blame."""
    changes = {"phase": Phase.STOPPED, "ended_at": sight.now, "reason": reason}
    with transaction.atomic():
        if not report(sight, runtime, **changes, exit_status=sight.seen.exit_status):
            return False
        words = f"{runtime.revision.preset} stopped" + (f": {reason}" if reason else "")
        tell(sight.lane, sight.now, "stopped", words)
    return True


def report_failed(
    sight: Sight, runtime: Runtime, reason: str, *, counts: bool, was_steady: bool
) -> bool:
    """Gone and should not be: the runtime, the failed load and the failure in one transaction."""
    reason = reason[:LONGEST]
    changes = {"phase": Phase.FAILED, "ended_at": sight.now, "reason": reason}
    with transaction.atomic():
        if not report(sight, runtime, **changes, exit_status=sight.seen.exit_status):
            return False
        if counts and runtime.ready_at is None:
            _record_load(sight, runtime, succeeded=False, reason=reason)
        count = _count_failure(sight, runtime, reason, counts=counts, was_steady=was_steady)
        words = f"{runtime.revision.preset} failed: {reason}"
        if count:
            words = (
                f"{words[: LONGEST - 40]}; next try in {retry_wait(count):.0f} s at the earliest"
            )
        tell(sight.lane, sight.now, "failed", words)
    return True


def clear_failures(sight: Sight, runtime: Runtime) -> None:
    """A minute of being ready is success."""
    rows = PresetFailure.objects.filter(lane=sight.lane, revision=runtime.revision, count__gt=0)
    with transaction.atomic():
        if rows.update(count=0, failed_at=None, reason="", booking_id_for=None):
            ticks.plan_soon()


def _is_still_ordered(sight: Sight) -> bool:
    """Whether the order is the one that was decided from: a newer one may want the server back."""
    newest = Order.objects.select_for_update().get(lane=sight.lane)
    return newest.generation == sight.wanted.generation


def _count_failure(
    sight: Sight, runtime: Runtime, reason: str, *, counts: bool, was_steady: bool
) -> int:
    """The failures in a row of the runtime's revision after this one; 0: none counted."""
    if not counts and not was_steady:
        return 0
    failure, _ = PresetFailure.objects.select_for_update().get_or_create(
        lane=sight.lane, revision=runtime.revision
    )
    if was_steady:  # success, though no look may have told while it lasted
        failure.last_exit_at, failure.count = sight.now, 0
    if counts:
        failure.count += 1
        failure.failed_at, failure.reason = sight.now, reason
        failure.booking_id_for = sight.order.booking_id_for
    failure.save()
    return failure.count if counts else 0


def _record_load(sight: Sight, runtime: Runtime, *, succeeded: bool, reason: str = "") -> None:
    started = runtime.started_at
    seconds = sight.seen.age or max(0.0, (sight.now - started).total_seconds())
    LoadRecord.objects.create(
        lane=sight.lane,
        revision=runtime.revision,
        generation=runtime.generation,
        started_at=started,
        seconds=seconds,
        succeeded=succeeded,
        reason=reason,
    )
