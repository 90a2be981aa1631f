"""What was read of cards at one moment. Pure values; bytes, percent, watts and degrees Celsius."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CardProcess:
    """A process that the driver names as a user of a card."""

    pid: int
    memory_bytes: int | None  # None: the driver does not say
    is_compute: bool = True  # else it only draws


@dataclass(frozen=True, slots=True)
class Card:
    """One card, known by its UUID: its index changes between boots. None: not to be had."""

    uuid: str
    name: str = ""
    index: int = 0
    total_bytes: int | None = None
    used_bytes: int | None = None
    utilisation: int | None = None
    power_watts: float | None = None
    temperature: int | None = None
    processes: tuple[CardProcess, ...] | None = None
    trouble: str = ""  # a sentence; empty: all is well


@dataclass(frozen=True, slots=True)
class Inventory:
    """All cards of a machine. Without a driver there are none, which is no trouble by itself."""

    driver: str = ""  # its version; empty: there is none, or it does not answer
    cards: tuple[Card, ...] = ()
    trouble: str = ""  # of the driver as a whole

    @property
    def is_driverless(self) -> bool:
        """Whether this machine has no NVIDIA driver at all."""
        return not self.driver and not self.trouble

    def card(self, uuid: str) -> Card | None:
        """The card of this UUID, if the driver shows it."""
        return next((card for card in self.cards if card.uuid == uuid), None)


@dataclass(frozen=True, slots=True)
class Holder:
    """A process on a card, with who it is as far as this host can tell."""

    pid: int
    ticks: int = 0  # its start by the kernel; 0: it cannot be seen here
    user: str = ""
    command: str = ""  # program, and the script it runs; never other arguments
    memory_bytes: int | None = None
    is_compute: bool = True
    lane: str = ""  # the lane whose server it belongs to; empty: no lane's

    @property
    def is_outside(self) -> bool:
        """Whether no lane owns it."""
        return not self.lane
