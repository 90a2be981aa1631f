"""Sentences about lanes, for people."""

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Max

from lanes.models import Lane, LaneEvent
from wire.words import kept_of

LONGEST = 500  # characters of a sentence or reason, as the columns hold them
FORGOTTEN_AT_ONCE = 1000


def add_event(
    lane: Lane,
    at: datetime,
    kind: str,
    sentence: str,
    *,
    actor: User | None = None,
    booking: int | None = None,
) -> None:
    """Add a sentence to the lane's history, cut to what the column holds.

    One that was made by `wire.words.said` can be told in other languages.
    """
    LaneEvent.objects.create(
        lane=lane,
        at=at,
        kind=kind,
        sentence=sentence[:LONGEST],
        words=kept_of(sentence),
        actor=actor,
        booking_id_for=booking,
    )


def forget_old(now: datetime) -> None:
    """Drop what is older than SLOTSERVE_EVENT_DAYS, not too much at once. The newest of each lane
    stays: the host looks at it before it says something again."""
    before = now - timedelta(days=settings.SLOTSERVE_EVENT_DAYS)
    oldest = LaneEvent.objects.order_by("pk").values_list("pk", "at")[:FORGOTTEN_AT_ONCE]
    old = {pk for pk, at in oldest if at < before}
    if old:
        newest = LaneEvent.objects.order_by().values_list("lane").annotate(newest=Max("pk"))
        LaneEvent.objects.filter(pk__in=old - {pk for _, pk in newest}).delete()
