"""Sentences about lanes, for people."""

from datetime import datetime

from django.contrib.auth.models import User

from lanes.models import Lane, LaneEvent
from wire.words import kept_of

LONGEST = 500  # characters of a sentence or reason, as the columns hold them


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
