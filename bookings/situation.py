"""What the planner knows of one lane, and what it decides: the words of `decide`."""

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo


@dataclass(frozen=True, slots=True)
class Target:
    """A preset revision that a lane can run, with its load estimate there in seconds."""

    revision_id: int
    preset: str  # slug
    load_seconds: float


@dataclass(frozen=True, slots=True)
class Claim:
    """A confirmed booking that is not over. Pending ones are no claims: they load nothing."""

    booking_id: int
    owner_id: int
    start: datetime
    end: datetime
    confirmed_at: datetime
    target: Target | None  # None: the whole GPU

    @property
    def active_from(self) -> datetime:
        """From when it counts as in progress: a booking confirmed late starts late."""
        return max(self.start, self.confirmed_at)


@dataclass(frozen=True, slots=True)
class Closure:
    """Maintenance: nothing runs in [start, end), or from start on."""

    start: datetime
    end: datetime | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """An administrator's manual target: a preset, or None to unload."""

    target: Target | None
    made_at: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Standing:
    """The lane's present order, as it was last decided: the fields of `Decision`, kept."""

    target: Target | None
    generation: int
    ordered_at: datetime  # of this generation
    rule: int
    booking_id: int | None  # the commitment of rules 1 to 3, kept through a fallback
    owner_id: int | None
    is_fallback: bool
    # Of the decision that was last written, not of the booking as it is now: a difference between
    # the two is how a moved booking, or one with another preset, ends its commitment.
    booking_start: datetime | None = None
    booking_preset: str = ""  # slug; empty: the whole GPU


@dataclass(frozen=True, slots=True)
class Report:
    """What the host says of the server of one generation: the lane's newest runtime, also one
    that has ended (a fallback that failed must be seen to have failed)."""

    generation: int
    revision_id: int
    phase: str  # lanes.models.Phase
    phase_since: datetime


@dataclass(frozen=True, slots=True)
class Failure:
    """A preset revision's failures in a row on this lane; only those still in force."""

    revision_id: int
    count: int  # 1 or more
    failed_at: datetime


@dataclass(frozen=True, slots=True)
class Margins:
    """Seconds that the rules reckon with."""

    buffer: float = 60.0
    stop: float = 20.0  # SLOTSERVE_STOP_TIMEOUT_SECONDS
    least_preload: float = 180.0  # MINP


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that bears on one lane's target. The order of tuples does not matter."""

    lane: str
    is_enabled: bool
    # At least the one in progress and the next one. Ones that are over change nothing, but end a
    # choice made before they began.
    claims: tuple[Claim, ...]
    choice: Choice | None
    default: Target | None
    order: Standing | None
    report: Report | None
    failures: tuple[Failure, ...]
    margins: Margins = Margins()
    zone: tzinfo = UTC  # for times in sentences
    closures: tuple[Closure, ...] = ()  # those that are not over


@dataclass(frozen=True, slots=True)
class Decision:
    """What the lane should run, by which rule, and when to ask again."""

    target: Target | None
    rule: int
    sentence: str
    reconsider_at: datetime | None
    booking_id: int | None = None  # the booking rules 1 to 3 serve, also in fallback
    owner_id: int | None = None  # whose slot is in progress
    is_fallback: bool = False
    booking_start: datetime | None = None  # of that booking, to be kept with the order
    booking_preset: str = ""
