"""What the calendar shows: bookings as they are read, and as somebody may see them. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


class Booked(NamedTuple):
    """A booking's row. A tuple: a span has thousands, of which few are shown one by one."""

    pk: int
    lane_id: int
    start: datetime
    end: datetime
    late: datetime | None  # when it was confirmed, where that was after its start
    state: str
    kind: str
    owner_id: int
    preset_id: int | None
    owner: str
    preset: str | None  # slug
    preset_name: str | None


@dataclass(frozen=True, slots=True)
class Block:
    """Several bookings of others on a lane, close to each other, as one."""

    first: Booked
    last: Booked
    count: int
    seconds: float  # booked

    @property
    def lane_id(self) -> int:
        """Their lane."""
        return self.first.lane_id

    @property
    def start(self) -> datetime:
        """When the first starts."""
        return self.first.start

    @property
    def end(self) -> datetime:
        """When the last ends."""
        return self.last.end


@dataclass(frozen=True, slots=True)
class Entry:
    """A booking as its reader may see it."""

    pk: int
    lane: str  # slug
    start: datetime
    end: datetime
    who: str
    what: str  # the preset's name; empty: the whole GPU
    is_mine: bool
    is_pending: bool
    is_held: bool  # for who waited, until it is confirmed
    is_editable: bool  # by the reader, now
    is_begun: bool  # its start stays
