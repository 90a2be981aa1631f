"""Sentences about lanes, for people."""

from datetime import datetime

from django.contrib.auth.models import User

from lanes.models import Lane, LaneEvent

LONGEST = 500  # characters of a sentence or reason, as the columns hold them


def add_event(
    lane: Lane, at: datetime, kind: str, sentence: str, *, actor: User | None = None
) -> None:
    """Add a sentence to the lane's history, cut to what the column holds."""
    LaneEvent.objects.create(lane=lane, at=at, kind=kind, sentence=sentence[:LONGEST], actor=actor)
