"""A week of each lane's cards, thinned to stretches of five minutes, in a ring.

A stretch is made of its minutes, anew with each of them: asked again, or after a pause, it is the
same.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby

from django.db.models import QuerySet

from lanes.models import Lane, LaneMinute, LaneStretch
from lanes.models.gpus import MINUTES_KEPT, STRETCH_MINUTES, STRETCHES_KEPT

STRETCH = timedelta(minutes=STRETCH_MINUTES)
WEEK = STRETCHES_KEPT * STRETCH
_FIELDS = ("minute", "samples", "used_bytes", "outside_bytes", "utilisation", "power_watts")


def of_lane(lane: Lane, now: datetime) -> QuerySet[LaneStretch]:
    """The stretches of the last week, oldest first; those in which nobody polled are missing."""
    return lane.stretches.filter(minute__gt=now - WEEK, minute__lte=now).order_by("minute")


def fold(lanes: Collection[int], minute: datetime, *, back: timedelta = 2 * STRETCH) -> None:
    """Make the stretches of these lanes' minutes before this one, so far back; two queries."""
    since = begin_of(minute - back)
    minutes = LaneMinute.objects.filter(lane__in=lanes, minute__gte=since, minute__lt=minute)
    found = groupby(
        minutes.order_by("lane", "minute"), key=lambda row: (row.lane_id, begin_of(row.minute))
    )
    LaneStretch.objects.bulk_create(
        [_stretch(lane, begin, list(rows)) for (lane, begin), rows in found],
        update_conflicts=True,
        unique_fields=["lane", "slot"],
        update_fields=_FIELDS,
    )


def _stretch(lane: int, begin: datetime, minutes: Sequence[LaneMinute]) -> LaneStretch:
    return LaneStretch(
        lane_id=lane,
        slot=slot_of(begin),
        minute=begin,
        samples=sum(row.samples for row in minutes),
        used_bytes=max(row.used_bytes for row in minutes),
        outside_bytes=max(row.outside_bytes for row in minutes),
        utilisation=_mean(row.utilisation for row in minutes),
        power_watts=_mean(row.power_watts for row in minutes),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def begin_of(minute: datetime) -> datetime:
    """When the stretch of this moment began."""
    return minute.replace(
        minute=minute.minute // STRETCH_MINUTES * STRETCH_MINUTES, second=0, microsecond=0
    )


def slot_of(begin: datetime) -> int:
    """Its place in the ring."""
    of_week = begin.weekday() * MINUTES_KEPT + begin.hour * 60 + begin.minute
    return of_week // STRETCH_MINUTES
