"""What the rules of booking are made of, what they judge, and what they answer. Pure."""

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum


class Approval(StrEnum):
    """Which bookings an administrator must approve."""

    NEVER = "never"
    GPU = "gpu"  # those of the whole GPU
    BEYOND = "beyond"  # those longer than `approval_hours`
    ALWAYS = "always"


class Code(StrEnum):
    """What can be broken."""

    NOT_ALLOWED = "not_allowed"
    GPU_NOT_ALLOWED = "gpu_not_allowed"
    PRESET_NOT_ALLOWED = "preset_not_allowed"
    OFF_GRID = "off_grid"
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"
    TOO_SOON = "too_soon"
    TOO_FAR_AHEAD = "too_far_ahead"
    DAY_FULL = "day_full"
    WEEK_FULL = "week_full"
    TOO_MANY_AHEAD = "too_many_ahead"


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for a member on a lane. A limit of 0 is none.

    `of_lane` names the quotas that count only bookings of this lane; others count all of them.
    """

    may_book: bool = True
    may_book_gpu: bool = True
    presets: frozenset[int] | None = None  # None: all
    grid_minutes: int = 0
    min_minutes: int = 0
    max_minutes: int = 0
    notice_minutes: int = 0
    ahead_days: int = 0
    day_hours: float = 0.0
    week_hours: float = 0.0
    bookings_ahead: int = 0
    approval: Approval = Approval.NEVER
    approval_hours: float = 0.0
    pending_hours: float = 0.0
    no_show_minutes: int = 0
    late_cancel_minutes: int = 0
    of_lane: frozenset[str] = frozenset()

    def may_load(self, preset: int) -> bool:
        """Whether this preset may be booked."""
        return self.presets is None or preset in self.presets

    @property
    def has_quota(self) -> bool:
        """Whether there is one that a member's bookings use up."""
        return bool(self.day_hours or self.week_hours or self.bookings_ahead)

    @property
    def counts_others(self) -> bool:
        """Whether a member's other bookings matter."""
        has_beyond = self.approval is Approval.BEYOND
        return self.has_quota or has_beyond or bool(self.max_minutes)


@dataclass(frozen=True, slots=True)
class Counted:
    """A booking of the member as quotas count it: [start, end) in UTC, on a lane.

    `is_claim`: it still is to be kept; one that was cancelled late or never used only counts.
    """

    lane: int
    start: datetime
    end: datetime
    is_claim: bool = True


@dataclass(frozen=True, slots=True)
class Claim:
    """What somebody wants: [start, end) in UTC; `preset` None is the whole GPU.

    `starts_now`: the start was left out. `before`: the booking that is changed, as it is; a start
    or end that stays as it is was fine once, and so is time that the booking holds already.
    """

    lane: int
    start: datetime
    end: datetime
    preset: int | None
    starts_now: bool = False
    before: Counted | None = None

    @property
    def is_start_kept(self) -> bool:
        """Whether nobody chose this start anew."""
        return self.before is not None and self.before.start == self.start

    @property
    def is_end_kept(self) -> bool:
        """The same of its end."""
        return self.before is not None and self.before.end == self.end

    @property
    def minutes(self) -> float:
        """How long it is, in real minutes."""
        return (self.end - self.start).total_seconds() / 60


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that is broken: what it allows, what was used already, and what is asked for.

    Minutes for lengths, notice and grid; days for how far ahead; hours for quotas; a count for
    bookings ahead. Where it is too long, `used` is how long the member's slots are that touch it.
    `day` is the day, or the first of the week, that is too full.
    """

    code: Code
    limit: float = 0.0
    used: float = 0.0
    asked: float = 0.0
    day: date | None = None

    @property
    def over(self) -> float:
        """How much too much it is, or too little."""
        return abs(self.used + self.asked - self.limit)
