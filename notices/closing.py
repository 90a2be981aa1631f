"""What whoever has booked a lane is to be told of its maintenance. Pure.

What was told before is read in the keys of notices: a number, a dot, and the maintenance's times or
OVER.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

OVER = "over"


@dataclass(frozen=True, slots=True)
class Closing:
    """One thing to tell: `event` is planned, changed or over; `mark` ends the notice's key."""

    event: str
    mark: str


def times_of(start: datetime, end: datetime | None) -> str:
    """The times of a maintenance as keys have them."""
    return f"{_stamp(start)}-{_stamp(end) if end else ''}"


def closing_news(times: str | None, before: Sequence[str]) -> Closing | None:
    """What is new to somebody who was told these marks, the oldest first; `times` of what is in the
    slot's way, None: nothing is any more."""
    last = before[-1].partition(".")[2] if before else OVER
    now = OVER if times is None else times
    if now == last:
        return None
    event = OVER if times is None else "planned" if last == OVER else "changed"
    return Closing(event, f"{len(before)}.{now}")


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y%m%dT%H%M%S")
