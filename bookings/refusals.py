"""Refusals of the booking services."""

from dataclasses import dataclass
from datetime import datetime

from lanes.refusals import Refusal


@dataclass(frozen=True, slots=True)
class Interval:
    """[start, end) in UTC; `booking_id` names the booking that holds it, if one does."""

    start: datetime
    end: datetime
    booking_id: int | None = None


@dataclass(frozen=True, slots=True)
class SlotTaken(Refusal):
    """Somebody holds the lane in that time: what is in the way, and the nearest free slots of
    the same length (before and after, when there are such)."""

    conflicts: tuple[Interval, ...] = ()
    nearest: tuple[Interval, ...] = ()
