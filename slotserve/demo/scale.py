"""How large the made-up company is."""

import random
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

T = TypeVar("T")


def sure(value: T | None) -> T:
    """The value, which this seeding has made itself."""
    if value is None:
        raise LookupError("the made-up company is not whole")
    return value


@dataclass(frozen=True, slots=True)
class Scale:
    """Counts of rows; `days` of history, and a quarter of that ahead."""

    lanes: int = 6
    members: int = 12
    bookings: int = 400
    days: int = 28
    requests: int = 30  # of each booking that is over


@dataclass(slots=True)
class Demo:
    """One seeding: the moment that it is about, and its dice."""

    now: datetime
    scale: Scale
    dice: random.Random = field(default_factory=lambda: random.Random(1))  # noqa: S311
