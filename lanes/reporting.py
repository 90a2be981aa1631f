"""What a host reports: its runtimes, loads and failures, and sentences about them for people.

Every report is fenced: it is written only over the row it was decided from, and never over one that
has ended.
"""

import logging
from datetime import datetime, timedelta

from django.db import transaction

from lanes import ticks
from lanes.backoff import retry_wait
from lanes.engines.base import ServerFacts
from lanes.events import LONGEST, add_event
from lanes.failures.causes import Cause, Kind
from lanes.models import (
    Lane,
    LaneEvent,
    LoadRecord,
    Order,
    Phase,
    PresetFailure,
    PresetRevision,
    Runtime,
)
from lanes.seeing import Sight
from lanes.steps import TERM
from wire.words import cut, remade, said

log = logging.getLogger(__name__)
REFUSED = "refused"  # the kind of an event: nothing starts yet, for a reason that passes by itself
SAME_FAILURE = timedelta(hours=1)
NO_FAILURE: dict[str, object] = {
    "reason": "",
    "failure_kind": "",
    "failure_line": "",
    "failure_advice": "",
    "words": None,
}


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
        words = said(
            "{preset} is ready after {seconds:.1f} s", preset=_name(runtime), seconds=sight.seen.age
        )
        tell(sight.lane, sight.now, "ready", words)
    return True


def report_drain(sight: Sight, runtime: Runtime, until: datetime) -> bool:
    """Draining: running requests may end until then."""
    with transaction.atomic():
        if not report(sight, runtime, phase=Phase.DRAINING, drain_until=until):
            return False
        words = said(
            "{preset} takes no new requests; running ones may finish", preset=_name(runtime)
        )
        tell(sight.lane, sight.now, "draining", words)
    return True


def cause_told(row: Runtime | PresetFailure) -> Cause:
    """The cause as it was reported."""
    kept = row.words or {}
    return Cause(
        Kind.named(row.failure_kind),
        remade(row.reason, kept.get("reason")),
        row.failure_line,
        remade(row.failure_advice, kept.get("advice")),
    )


def _name(runtime: Runtime) -> str:
    return runtime.revision.preset.slug


def report_stopping(sight: Sight, runtime: Runtime, cause: Cause | None) -> bool:
    """Stopping from now on, before the first signal: a worker that dies between is made up for.
    With a cause: it failed."""
    changes: dict[str, object] = {"phase": Phase.STOPPING, "term_at": sight.now}
    changes |= {"signals_sent": TERM, **(cause.columns if cause else {"reason": ""})}
    with transaction.atomic():
        if not _is_still_ordered(sight):
            return False
        if not report(sight, runtime, **changes):
            return False
        if runtime.phase != Phase.STOPPING:
            words = said("stopping {preset}", preset=_name(runtime))
            if cause:
                words = said("{sentence}: {why}", sentence=words, why=cause.sentence)
            tell(sight.lane, sight.now, "stopping", words)
    return True


def report_stopped(sight: Sight, runtime: Runtime, reason: str) -> bool:
    """Gone, and nobody is to blame."""
    changes = {"phase": Phase.STOPPED, "ended_at": sight.now, "reason": reason}
    with transaction.atomic():
        if not report(sight, runtime, **changes, exit_status=sight.seen.exit_status):
            return False
        words = said("{preset} stopped", preset=_name(runtime))
        if reason:
            words = said("{sentence}: {why}", sentence=words, why=reason)
        tell(sight.lane, sight.now, "stopped", words)
    return True


def report_failed(
    sight: Sight, runtime: Runtime, cause: Cause, *, counts: bool, was_steady: bool
) -> bool:
    """Gone and should not be: the runtime, the failed load and the failure in one transaction."""
    changes = {"phase": Phase.FAILED, "ended_at": sight.now, **cause.columns}
    with transaction.atomic():
        if not report(sight, runtime, **changes, exit_status=sight.seen.exit_status):
            return False
        if counts and runtime.ready_at is None:
            _record_load(sight, runtime, succeeded=False, reason=cause.sentence[:LONGEST])
        count = _count_failure(sight, runtime.revision, cause, counts=counts, was_steady=was_steady)
        tell(sight.lane, sight.now, "failed", _failed(_name(runtime), cause, count))
        if count:
            ticks.notices_soon()
    return True


def _failed(preset: str, cause: Cause, count: int) -> str:
    """That it failed, why, and when it is tried again; the last is said at any length."""
    words = said("{preset} failed: {why}", preset=preset, why=cause.words)
    if not count:
        return words
    wait = said("Next try in {seconds:.0f} s at the earliest.", seconds=retry_wait(count))
    least = len(wait) + 1
    return said("{first} {second}", first=cut(words, LONGEST - least), second=wait)


def report_blocked(sight: Sight, cause: Cause) -> bool:
    """Not started, because it has no room on the cards or the host does not start such a server:
    a failure as any other, tried again when its retry is due."""
    target = sight.order.target
    if target is None:
        return False
    with transaction.atomic():
        if not _is_still_ordered(sight):
            return False
        _count_failure(sight, target, cause, counts=True, was_steady=False)
        words = said("{preset} is not loaded: {why}", preset=target.preset.slug, why=cause.sentence)
        tell(sight.lane, sight.now, "blocked", words)
        ticks.plan_soon()
        ticks.notices_soon()
    return True


def clear_failures(sight: Sight, runtime: Runtime) -> None:
    """A minute of being ready is success."""
    rows = PresetFailure.objects.filter(lane=sight.lane, revision=runtime.revision, count__gt=0)
    with transaction.atomic():
        if rows.update(count=0, failed_at=None, booking_id_for=None, **NO_FAILURE):
            ticks.plan_soon()


def _is_still_ordered(sight: Sight) -> bool:
    """Whether the order is the one that was decided from: a newer one may want the server back."""
    newest = Order.objects.select_for_update().get(lane=sight.lane)
    return newest.generation == sight.wanted.generation


def _count_failure(
    sight: Sight, revision: PresetRevision, cause: Cause, *, counts: bool, was_steady: bool
) -> int:
    """The revision's failures in a row after this one; 0: none counted."""
    if not counts and not was_steady:
        return 0
    failure, _ = PresetFailure.objects.select_for_update().get_or_create(
        lane=sight.lane, revision=revision
    )
    if was_steady:  # success, though no look may have told while it lasted
        failure.last_exit_at, failure.count = sight.now, 0
    if counts and not failure.count and not (was_steady and _is_recent(failure, sight.now)):
        failure.since = sight.now
    if counts:
        failure.count += 1
        failure.failed_at = sight.now
        failure.booking_id_for = sight.order.booking_id_for
        for name, value in cause.columns.items():
            setattr(failure, name, value)
    failure.save()
    return failure.count if counts else 0


def _is_recent(failure: PresetFailure, now: datetime) -> bool:
    """Whether a server that dies again and again, each time after a while, began to do so lately:
    people are told of that once an hour, not at each turn."""
    return failure.since is not None and timedelta() <= now - failure.since < SAME_FAILURE


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
