"""Reads of maintenance."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db.models import F, Q, QuerySet

from lanes.models import Maintenance


def not_over(now: datetime, lane_pks: Collection[int] | None = None) -> QuerySet[Maintenance]:
    """Those in force and to come of these lanes, or of all, by start."""
    found = Maintenance.objects.filter(Q(end=None) | Q(end__gt=now), ended_at=None)
    return found if lane_pks is None else found.filter(lane__in=lane_pks)


def within(
    start: datetime, end: datetime, lane_pks: Collection[int] | QuerySet[Any, Any]
) -> QuerySet[Maintenance]:
    """Those that close some of [start, end) of these lanes, or did."""
    until = Q(end=None) | Q(end__gt=start)
    was = Q(ended_at=None) | Q(ended_at__gt=start)
    found = Maintenance.objects.filter(until, was, lane__in=lane_pks, start__lt=end)
    return found.exclude(ended_at__lte=F("start"))
