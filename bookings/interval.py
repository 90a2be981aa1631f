"""A time that is taken or free. Pure."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Interval:
    """[start, end) in UTC; `booking_id` names the booking that holds it, if one does; `is_now`: it
    is to be had by leaving the start out, as it will have passed when it is asked for."""

    start: datetime
    end: datetime
    booking_id: int | None = None
    is_now: bool = field(default=False, compare=False)
