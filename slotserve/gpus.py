"""What people and programs are shown of cards: readings, who is on them, a day of a lane. Reads."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy

from lanes.gpus import history, weeks
from lanes.gpus.outsiders import Verdict
from lanes.gpus.readings import Holder
from lanes.gpus.stored import holders_of, verdict_of
from lanes.models import Gpu, GpuState, Host, HostGpus, Lane

MEBIBYTE = 2**20
SILENT_AFTER = timedelta(minutes=1)  # hosts read their cards each five seconds
NEVER_READ = gettext_lazy("This card has not been read yet: does its host's worker run?")


@dataclass(frozen=True, slots=True)
class CardProcess:
    """A process on a card, and whose it is."""

    holder: Holder
    is_outsider: bool  # by the verdict: two clean polls say so


@dataclass(frozen=True, slots=True)
class CardView:
    """One card at one moment."""

    gpu: Gpu
    lane: Lane | None
    state: GpuState | None
    verdict: Verdict
    processes: tuple[CardProcess, ...] | None  # None: the driver does not tell
    now: datetime

    @property
    def is_silent(self) -> bool:
        """Whether it was not read for so long that what is said of it may be old."""
        return self.state is None or self.state.read_at < self.now - SILENT_AFTER

    @property
    def trouble(self) -> str:
        """What keeps it from being read; empty when all is well."""
        return self.state.told if self.state else str(NEVER_READ)

    @property
    def percent(self) -> int | None:
        """Memory in use."""
        if self.state is None or self.state.used_bytes is None or not self.gpu.memory_bytes:
            return None
        return round(100 * self.state.used_bytes / self.gpu.memory_bytes)


@dataclass(frozen=True, slots=True)
class CardFigures:
    """Of some cards together, in MiB and percent; None: nobody knows."""

    memory: int
    used: int | None
    busy: int | None


def figures_of(cards: Iterable[Gpu]) -> CardFigures:
    """The newest readings together. Give it cards with their `state`."""
    cards = list(cards)
    states = [card.state for card in cards if hasattr(card, "state")]
    used = [state.used_bytes for state in states if state.used_bytes is not None]
    busy = [state.utilisation for state in states if state.utilisation is not None]
    return CardFigures(
        memory=sum(card.memory_bytes for card in cards) // MEBIBYTE,
        used=sum(used) // MEBIBYTE if used else None,
        busy=round(sum(busy) / len(busy)) if busy else None,
    )


def cards_of_lane(lane: Lane, now: datetime) -> list[CardView]:
    """The lane's cards; two queries."""
    return cards(lane.gpus.all(), now)


def cards(gpus: QuerySet[Gpu], now: datetime) -> list[CardView]:
    """These cards with their newest readings, by host and index; two queries."""
    rows = gpus.select_related("host", "state").defer(None).prefetch_related("lanes")
    return [_view(gpu, now) for gpu in rows.order_by("host__name", "state__number", "uuid")]


def without_names(card: CardView) -> CardView:
    """The card for those who are no administrators: what a machine's processes are called and whose
    they are is not every member's to know."""
    if card.processes is None:
        return card
    hidden = (
        replace(each, holder=replace(each.holder, user="", command="")) for each in card.processes
    )
    return replace(card, processes=tuple(hidden))


def drivers(hosts: Iterable[Host]) -> dict[int, HostGpus]:
    """What each host says of its driver, by the host's primary key; one query."""
    return {row.host_id: row for row in HostGpus.objects.filter(host__in=list(hosts))}


class Minute(NamedTuple):
    """What is shown of a minute of a lane's cards: `LaneMinute`, of which a day has 1,440; or of
    five: `LaneStretch`, of which a week has 2,016."""

    minute: datetime
    used_bytes: int
    outside_bytes: int
    utilisation: float | None
    power_watts: float | None
    samples: int


def day_of_lane(lane: Lane, now: datetime) -> list[Minute]:
    """The lane's minutes of the last 24 hours, oldest first; one query."""
    return [Minute._make(row) for row in history.of_lane(lane, now).values_list(*Minute._fields)]


def week_of_lane(lane: Lane, now: datetime) -> list[Minute]:
    """The lane's last 7 days by five minutes, oldest first; one query."""
    return [Minute._make(row) for row in weeks.of_lane(lane, now).values_list(*Minute._fields)]


def _view(gpu: Gpu, now: datetime) -> CardView:
    state = getattr(gpu, "state", None)
    verdict = verdict_of(gpu)
    outside = {(holder.pid, holder.ticks) for holder in verdict.outsiders}
    holders = holders_of(state) if state else None
    return CardView(
        gpu=gpu,
        lane=next(iter(gpu.lanes.all()), None),
        state=state,
        verdict=verdict,
        processes=None
        if holders is None
        else tuple(CardProcess(each, (each.pid, each.ticks) in outside) for each in holders),
        now=now,
    )
