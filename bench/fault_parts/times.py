"""The stepped clock of the product."""

import time
from dataclasses import dataclass, field
from pathlib import Path

SLEEP = """import select, time
time.sleep = lambda seconds: select.select([], [], [], seconds) and None
"""


@dataclass(slots=True)
class Clock:
    """The product's clock: ours and an offset that libfaketime adds. Keeps all its steps."""

    file: Path
    steps: list[tuple[float, float]] = field(default_factory=list)  # our time, offset since then

    def __post_init__(self) -> None:
        self.step_to(0.0)

    def step_to(self, offset: float) -> None:
        """From now on every process of the product is this many seconds ahead of us."""
        new = self.file.with_suffix(".new")
        new.write_text(f"{offset:+.3f}\n")
        at = time.time()  # before: nothing that sees the step may seem to have come earlier
        new.replace(self.file)
        self.steps.append((at, offset))

    @property
    def offset(self) -> float:
        """Seconds that the product is ahead now."""
        return self.steps[-1][1]

    def at(self, moment: float) -> float:
        """What the product's clock showed at one of our moments."""
        offsets = [offset for since, offset in self.steps if since <= moment]
        return moment + (offsets[-1] if offsets else 0.0)

    def is_near_step(self, moment: float, seconds: float) -> bool:
        """Whether it was stepped in the seconds before."""
        return any(0 <= moment - since <= seconds for since, _ in self.steps[1:])


def find_faketime() -> Path | None:
    """The library for programs with threads, where Debian's package puts it; None: not here."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    return found[0] if found else None


def faketime_environment(library: Path, clock: Clock) -> dict[str, str]:
    """Variables that put a program and its children under that clock; waits stay as they are.

    libfaketime breaks waits until a moment of the monotonic clock, which is how Python sleeps: so
    Python is taught to sleep in another way.
    """
    taught = clock.file.with_name("taught")
    taught.mkdir(exist_ok=True)
    (taught / "sitecustomize.py").write_text(SLEEP)
    return {
        "PYTHONPATH": str(taught),
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(clock.file),
        "FAKETIME_NO_CACHE": "1",  # a clock is set for all programs of a machine at once
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }
