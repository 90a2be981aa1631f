"""Those who wait for a lane, in order of arrival. Pure.

A place belongs to one lane: there it counts, and there its position is told. A turn that several
lanes could serve waits for all of them, in one place.
"""

import bisect
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from gateway.edge.exchange import Exchange
from gateway.edge.prefer import Patience
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routing import Asked, Caller
from gateway.edge.table import Upstream

_NUMBERS = itertools.count(1)
_BY_NUMBER = attrgetter("number")
NO_PATIENCE = Patience(0.0, 0.0)


@dataclass(eq=False, slots=True)
class Turn:
    """One request that wants in. Its number keeps its place when it must come back."""

    caller: Caller
    asked: Asked
    needs_slot: bool = True
    patience: Patience = NO_PATIENCE
    number: int = field(default_factory=_NUMBERS.__next__)  # order of arrival
    avoided: Upstream | None = None  # could not be reached a moment ago
    avoided_until: float = 0.0  # monotonic
    is_host_away: bool = False  # not even its machine answered
    lane: str = ""  # in whose queue it stands; empty while it does not wait
    owner: int | None = None  # whose request it is, once it has stood in a queue
    wanted: tuple[str, ...] = ()  # lanes that would serve it if they had a free slot
    since: float | None = None  # monotonic: the first refusal that made it wait
    deadline: float = 0.0  # monotonic, by what it waits for now
    last: EdgeRefusal | None = None  # why it waits
    outcome: Exchange | EdgeRefusal | None = None  # of its waiting
    on_end: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Unsure:
    """Whether this lane has a free slot of so many only other edges can tell."""

    lane: str
    slots: int


class Queue:
    """Turns in order of arrival, each counted at its lane."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []
        self._counts: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._turns)

    def __iter__(self) -> Iterator[Turn]:
        """A copy, so that turns may come and go meanwhile."""
        return iter(self._turns.copy())

    @property
    def waiting(self) -> Mapping[str, int]:
        """How many wait, by lane."""
        return self._counts

    def join(self, turn: Turn, lane: str) -> None:
        """Take a place by number: who comes back stands where he stood."""
        bisect.insort(self._turns, turn, key=_BY_NUMBER)
        self._count(lane, 1)
        turn.lane = lane

    def move(self, turn: Turn, lane: str) -> None:
        """What it waits for is another lane now."""
        if lane != turn.lane:
            self._count(turn.lane, -1)
            self._count(lane, 1)
            turn.lane = lane

    def leave(self, turn: Turn) -> None:
        """Give the place up, if it has one."""
        if turn.lane:
            del self._turns[self._index(turn)]
            self._count(turn.lane, -1)
            turn.lane, turn.wanted = "", ()

    def held_by(self, owner: int | None, lane: str) -> int:
        """How many of the lane's places this person has."""
        return sum(turn.owner == owner and turn.lane == lane for turn in self._turns)

    def position(self, turn: Turn) -> int:
        """1 for the next one of its lane."""
        before = self._turns[: self._index(turn)]
        return 1 + sum(each.lane == turn.lane for each in before)

    def is_wanted(self, lane: str, number: int) -> bool:
        """Whether somebody who came before `number` waits for a slot of this lane."""
        for turn in self._turns:
            if turn.number >= number:
                return False
            if lane in turn.wanted:
                return True
        return False

    def wanting(self, lane: str) -> list[Turn]:
        """Who waits for a slot of this lane, in order of arrival."""
        return [turn for turn in self._turns if lane in turn.wanted]

    def _index(self, turn: Turn) -> int:
        return bisect.bisect_left(self._turns, turn.number, key=_BY_NUMBER)

    def _count(self, lane: str, change: int) -> None:
        count = self._counts.get(lane, 0) + change
        if count:
            self._counts[lane] = count
        else:
            del self._counts[lane]
