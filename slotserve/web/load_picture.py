"""A lane's loads as bars of an SVG, the oldest on the left. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from lanes.models import LoadRecord

BAR, GAP, HEIGHT = 20, 4, 100
LEAST_BARS = 20  # that there is room for, so that few are not wide
LEAST = 2.0  # so that the shortest is seen


@dataclass(frozen=True, slots=True)
class Bar:
    """One load: a rectangle, and the row of the table that says the same."""

    load: LoadRecord
    x: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Loads:
    """The picture; its height is `longest` seconds."""

    bars: tuple[Bar, ...]
    width: int
    longest: float

    @property
    def newest_first(self) -> tuple[Bar, ...]:
        """As the table lists them."""
        return self.bars[::-1]


def draw_loads(newest_first: Sequence[LoadRecord]) -> Loads:
    """One bar for each, as high as its share of the longest."""
    longest = max((load.seconds for load in newest_first), default=0.0)
    bars = []
    for number, load in enumerate(reversed(newest_first)):
        share = load.seconds / longest if longest > 0 else 0.0
        height = round(max(HEIGHT * share, LEAST), 1)
        bars.append(Bar(load, number * (BAR + GAP), round(HEIGHT - height, 1), height))
    return Loads(tuple(bars), max(len(bars), LEAST_BARS) * (BAR + GAP) - GAP, longest)
