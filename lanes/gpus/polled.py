"""What one poll saw, by lane: values that history and watching take."""

from dataclasses import dataclass

from lanes.gpus.outsiders import Verdict
from lanes.gpus.readings import Card, Holder
from lanes.gpus.room import Space
from lanes.models import Gpu, Lane, Runtime


@dataclass(frozen=True, slots=True)
class PolledCard:
    """One card, who is on it, and the verdict before and after."""

    gpu: Gpu
    card: Card
    holders: tuple[Holder, ...] | None
    before: Verdict
    verdict: Verdict

    @property
    def space(self) -> Space | None:
        """Its memory; None: the driver does not tell."""
        if self.card.used_bytes is None:
            return None
        total = self.card.total_bytes or self.gpu.memory_bytes
        return Space(total, self.card.used_bytes, self.verdict)


@dataclass(frozen=True, slots=True)
class PolledLane:
    """The cards of one lane (None: of no lane) and its living server."""

    lane: Lane | None
    runtime: Runtime | None
    cards: tuple[PolledCard, ...]

    @property
    def spaces(self) -> list[Space]:
        """Memory of its cards; empty when that of any is not known."""
        spaces = [space for card in self.cards if (space := card.space) is not None]
        return spaces if len(spaces) == len(self.cards) else []

    @property
    def outsiders(self) -> list[tuple[PolledCard, Holder]]:
        """Each process on its cards that no lane owns."""
        return [(card, holder) for card in self.cards for holder in card.verdict.outsiders]

    @property
    def own_bytes(self) -> int:
        """What processes of this lane's server are seen to hold."""
        slug = self.lane.slug if self.lane else ""
        mine = (
            holder.memory_bytes or 0
            for card in self.cards
            for holder in card.holders or ()
            if slug and holder.lane == slug
        )
        return sum(mine)
