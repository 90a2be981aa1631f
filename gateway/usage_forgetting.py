"""Forgetting requests one by one, when they are old: the days that they were counted in stay."""

import time
from datetime import datetime, timedelta

from django.conf import settings

from bookings.models import Booking
from gateway.models import UsageDueDay, UsageProgress, UsageRecord
from gateway.usage import BATCH, pause
from gateway.usage_days import bounds, day_of
from gateway.usage_facts import LONGEST

BUDGET_SECONDS = 2.0  # of one call, so that no task is long
# A day is worked out from requests that began up to a day before it, and another zone begins days
# up to 26 hours sooner.
MARGIN = LONGEST + timedelta(days=2)


def forget_records(now: datetime) -> int:
    """Delete those that are older than SLOTSERVE_USAGE_DAYS, for about two seconds; how many.

    For `roll_up`, which alone may call it. None while a day of them is still to be worked out, and
    none that was not looked at yet. From then on their days stay as they are.
    """
    kept_from = day_of(now - timedelta(days=settings.SLOTSERVE_USAGE_DAYS))
    progress = UsageProgress.objects.filter(zone=settings.TIME_ZONE).first()
    if progress is None or UsageDueDay.objects.filter(day__lt=kept_from).exists():
        return 0
    old = UsageRecord.objects.filter(
        at__lt=bounds(kept_from).first - MARGIN, pk__lte=progress.last_record
    )
    forgotten, deadline = 0, time.monotonic() + BUDGET_SECONDS
    while found := list(old.order_by("at").values_list("pk", flat=True)[:BATCH]):
        if not forgotten:
            UsageProgress.objects.exclude(kept_from__gte=kept_from).update(kept_from=kept_from)
        forgotten += UsageRecord.objects.filter(pk__in=found).delete()[0]
        if time.monotonic() >= deadline:
            break
        pause()
    return forgotten


def is_known_by_day_alone(booking: Booking, now: datetime) -> bool:
    """Whether requests of the booking may be forgotten; a query for one that is old."""
    if booking.active_from > now - timedelta(days=settings.LEAST_USAGE_DAYS):
        return False
    day = day_of(booking.active_from)
    return UsageProgress.objects.filter(kept_from__gt=day).exists()
