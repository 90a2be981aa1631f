"""What a campaign asks of an installation, whether it is one machine or two."""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from bench.fault_parts.times import Clock
from lanes.models import Lane
from lanes.processes import Stat

Faults = dict[str, tuple[int, Callable[[random.Random], object]]]  # how often, and how made


class Installation(Protocol):
    """Running; it starts again what ends."""

    folder: Path
    served: Path  # what model servers note
    clock: Clock

    @property
    def restarts(self) -> int:
        """How often something that had ended was started again."""

    @property
    def stages(self) -> Sequence[str]:
        """What it is, for people."""

    @property
    def kills(self) -> Mapping[str, int]:
        """What can be killed, and how often it is."""

    @property
    def web_url(self) -> str:
        """Where its pages are."""

    @property
    def gateway_url(self) -> str:
        """Where its gateway is."""

    def kill(self, part: str) -> bool:
        """KILL to a part; False when it does not run now."""

    def model_servers(self, lane: Lane, *, shims: bool = False) -> list[Stat]:
        """Living processes of a lane: its servers, or those that own them."""

    def faults(self) -> Faults:
        """What can be done to it beyond killing. They return when only consequences are left."""

    def more_seconds(self, lane: Lane, faults: Sequence[str]) -> float:
        """What is promised for a lane beyond what is for all, after these faults."""

    def missing(self) -> list[str]:
        """Which faults cannot be made here, for people."""

    def stop(self) -> list[str]:
        """Stop it in order; what was wrong with that, and what it left behind. Safe to repeat."""

    def keep(self, where: Path) -> None:
        """Copy its logs and notes."""

    def close(self) -> None:
        """Take all of it away."""
