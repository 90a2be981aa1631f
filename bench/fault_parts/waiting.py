"""How long a lane may take to be right again, and how long it took."""

from dataclasses import dataclass

from bench.fault_parts.right import Look

SLOT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Recovery:
    """How a lane came back after a bout."""

    lane: str
    faults: tuple[str, ...]
    seconds: float
    limit: float  # the promise
    wrong: str  # what was still wrong when it was waited for no longer; empty: it came back

    @property
    def is_late(self) -> bool:
        """Whether the promise was broken."""
        return bool(self.wrong) or self.seconds > self.limit


@dataclass(slots=True)
class Wait:
    """For one lane. Times are ours.

    The promise counts from the last fault's end, and anew when something else is wanted or somebody
    else has the lane: only within the first slot's length, so that a lane which is never right, as
    its target changes first each time, is late.
    """

    since: float  # the last fault's end
    promise: float  # drain + stop + load + what is promised beyond
    aim: tuple[int | None, str] | None = None
    counted_from: float = 0.0
    rest: float = 0.0  # the longest that was seen: it is over when the lane is right

    def take(self, look: Look, at: float) -> None:
        """Reckon with a look."""
        if look.aim is not None and look.aim != self.aim:
            is_first = self.aim is None
            self.aim = look.aim
            if not is_first:
                self.counted_from = min(at, self.since + SLOT_SECONDS)
        self.rest = max(self.rest, look.rest)

    @property
    def limit(self) -> float:
        """Seconds that are promised."""
        return self.promise + self.rest

    def seconds(self, at: float) -> float:
        """Seconds that count."""
        return at - max(self.since, self.counted_from)
