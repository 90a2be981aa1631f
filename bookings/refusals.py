"""Refusals of the booking services."""

from dataclasses import dataclass
from datetime import datetime

from bookings.interval import Interval
from bookings.policy import Broken
from lanes.refusals import Refusal

__all__ = [
    "BrokenRule",
    "Hold",
    "Interval",
    "Offering",
    "RulesBroken",
    "SlotTaken",
    "UnderMaintenance",
]


@dataclass(frozen=True, slots=True)
class Hold:
    """What the waitlist holds for the member who asks, and until when it may be taken."""

    slot: Interval
    until: datetime


@dataclass(frozen=True, slots=True)
class Offering(Refusal):
    """What is in the way, and up to three slots near it that are free and break no rule. `why`: the
    sentence without what is free."""

    why: str = ""
    conflicts: tuple[Interval, ...] = ()
    nearest: tuple[Interval, ...] = ()
    hold: Hold | None = None  # the member's own among the conflicts, if one is


@dataclass(frozen=True, slots=True)
class SlotTaken(Offering):
    """Somebody holds the lane in that time."""


@dataclass(frozen=True, slots=True)
class UnderMaintenance(Offering):
    """The lane is closed for some of that time; `conflicts` are the closed times."""


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule that a wish breaks, and the words for it; numbers in the units of `Broken`."""

    broken: Broken
    words: str


@dataclass(frozen=True, slots=True)
class RulesBroken(Offering):
    """Every rule that a wish breaks (code rules_broken); somebody may hold the time as well."""

    broken: tuple[BrokenRule, ...] = ()
    taken: str = ""  # who holds the time, in words, if somebody does
