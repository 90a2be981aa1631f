"""Why what a lane should run does not: for pages and REST. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lanes.backoff import retry_wait
from lanes.models import Order, Phase, PresetFailure, PresetRevision, Runtime


@dataclass(frozen=True, slots=True)
class Trouble:
    """A failure that is in force."""

    revision: PresetRevision
    kind: str  # a word for programs; lanes/failures/causes.py has them
    sentence: str
    line: str  # where it was read; empty: nothing was written about it, or not for this person
    advice: str
    count: int  # failures in a row
    retry_at: datetime | None  # None: its moment has come, or the default serves: the decision says
    is_fallback: bool  # the default serves meanwhile


def trouble_of(
    runtime: Runtime | None,
    order: Order | None,
    failures: Sequence[PresetFailure],
    now: datetime,
) -> Trouble | None:
    """The failure of the server that is shown, of what was not even started (no room on the cards,
    a program that the host does not have), or of the preset that the default stands in for.

    `runtime` is the one that is shown; `failures` are those of the lane in force, the oldest first.
    """
    if order is not None and (runtime is None or runtime.phase == Phase.FAILED):
        mine = [one for one in failures if one.revision_id == order.target_id]
        if mine and _is_later(mine[-1], runtime):
            return _trouble(mine[-1], mine[-1].revision, mine[-1], now)
    if runtime is not None and runtime.phase == Phase.FAILED:
        same = [one for one in failures if one.revision_id == runtime.revision_id]
        return _trouble(runtime, runtime.revision, same[-1] if same else None, now)
    if order is None or not order.is_fallback:
        return None
    others = [one for one in failures if one.revision_id != order.target_id]
    booked = [one for one in others if one.booking_id_for == order.booking_id_for] or others
    if not booked:
        return None
    return _trouble(booked[-1], booked[-1].revision, booked[-1], now, is_fallback=True)


def _is_later(failure: PresetFailure, runtime: Runtime | None) -> bool:
    """Whether it came after the end of the server that is shown: nothing was started."""
    if runtime is None or runtime.ended_at is None or failure.failed_at is None:
        return runtime is None
    return failure.failed_at > runtime.ended_at


def _trouble(
    told: Runtime | PresetFailure,
    revision: PresetRevision,
    failure: PresetFailure | None,
    now: datetime,
    *,
    is_fallback: bool = False,
) -> Trouble:
    retry_at = None
    if failure is not None and failure.failed_at is not None and not is_fallback:
        retry_at = failure.failed_at + timedelta(seconds=retry_wait(failure.count))
    return Trouble(
        revision=revision,
        kind=told.failure_kind or "unknown",
        sentence=told.told_reason,
        line=told.failure_line,
        advice=told.told_advice,
        count=failure.count if failure else 0,
        retry_at=retry_at if retry_at is not None and retry_at > now else None,
        is_fallback=is_fallback,
    )
