"""How long requests have lately held a slot of each lane: what estimates are made of. Pure."""

_NEWEST = 0.2  # weight of the newest request
_MOST_LANES = 1024


class Paces:
    """A moving mean of the seconds that a slot is held, by lane."""

    def __init__(self) -> None:
        self._means: dict[str, float] = {}

    def add(self, slug: str, seconds: float) -> None:
        """A request has given its slot back after so long."""
        mean = self._means.get(slug)
        if mean is None and len(self._means) >= _MOST_LANES:
            self._means.clear()
        self._means[slug] = seconds if mean is None else mean + _NEWEST * (seconds - mean)

    def seconds(self, slug: str, slots: int) -> float | None:
        """The time between two slots becoming free while all are busy; None: nothing is known."""
        mean = self._means.get(slug)
        return None if mean is None else mean / slots
