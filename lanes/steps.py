"""The words of `next_step`: what a lane's host wants, sees, and can do next."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

TERM, SECOND_TERM, KILL = 1, 2, 3  # how far the signals to a server have gone


class Process(Enum):
    """What is seen of the runtime's process on the host."""

    UNBORN = "unborn"  # nothing was recorded: its spawner died, or it is on its way
    LIVING = "living"  # its shim lives
    GONE = "gone"  # it and its shim are gone
    REBOOTED = "rebooted"  # it was started before the host's last boot


class Phase(Enum):
    """The phases of a runtime that has not ended."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    STOPPING = "stopping"


class Barrier(Enum):
    """Whether requests may still run at the server."""

    ZERO = "zero"
    BUSY = "busy"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The lane's newest order. A server older than `fresh_from` will not do."""

    generation: int
    revision_id: int | None
    is_reload: bool = False
    fresh_from: int = 0


@dataclass(frozen=True, slots=True)
class Running:
    """The runtime that has not ended, as it was last reported. Times are the database's."""

    generation: int
    revision_id: int
    phase: Phase
    started_at: datetime
    ready_at: datetime | None = None
    drain_until: datetime | None = None
    term_at: datetime | None = None
    signals_sent: int = 0
    reason: str = ""  # why it is being stopped, when that is a failure


@dataclass(frozen=True, slots=True)
class Failed:
    """A preset revision's failures in a row on this lane (0: none in force)."""

    revision_id: int
    count: int = 0
    failed_at: datetime | None = None
    last_exit_at: datetime | None = None  # after a minute or more of being ready


@dataclass(frozen=True, slots=True)
class Seen:
    """What the host sees. `age` is the shim's by the kernel (0: none lives): no clock moves it."""

    runtime: Running | None = None
    process: Process = Process.UNBORN
    age: float = 0.0
    exit_status: int | None = None
    is_healthy: bool = False
    trouble: str = ""  # what keeps an answering server from being ready
    advice: str = ""  # what to try then
    is_open: bool = False  # it answers without its key
    is_port_foreign: bool = False  # somebody else's process listens there
    barrier: Barrier = Barrier.UNKNOWN
    is_stillborn: bool = False  # its shim ended of itself before it wrote anything down
    is_locked: bool = False  # somebody holds the lane's lock
    is_memory_free: bool = True
    shortage: str = ""  # why what is wanted has no room on the cards
    failures: tuple[Failed, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds."""

    drain: float = 30.0
    stop: float = 20.0  # the whole of TERM, TERM, KILL
    load: float = 600.0
    spawn: float = 6.0  # after which an unborn server is given up


@dataclass(frozen=True, slots=True)
class Nothing:
    """All is as it is wanted."""


@dataclass(frozen=True, slots=True)
class KeepWaiting:
    """Look again in some seconds."""

    next_look: float


@dataclass(frozen=True, slots=True)
class Start:
    """Start a server of the wanted revision."""

    generation: int
    revision_id: int


@dataclass(frozen=True, slots=True)
class MarkBlocked:
    """It has no room on the cards: a failure of its revision, though nothing was started."""

    reason: str


@dataclass(frozen=True, slots=True)
class MarkReady:
    """It answers: report it and record the load."""


@dataclass(frozen=True, slots=True)
class CarryOn:
    """It serves a newer generation too; a drain, if one began, is called off."""

    generation: int


@dataclass(frozen=True, slots=True)
class BeginDrain:
    """Report that it drains, until then at most."""

    until: datetime


@dataclass(frozen=True, slots=True)
class SendTerm:
    """Ask it to end. With a reason: it failed."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class SendSecondTerm:
    """Ask again: llama-server then drops the requests that hang."""


@dataclass(frozen=True, slots=True)
class SendKill:
    """End it."""


@dataclass(frozen=True, slots=True)
class MarkStopped:
    """It is gone, and nobody is to blame."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class MarkFailed:
    """It is gone and should not be. `counts`: one more failure in a row of its revision.
    `was_steady`: remember the exit. An empty reason is to be read from the log."""

    reason: str = ""
    counts: bool = True
    was_steady: bool = False


@dataclass(frozen=True, slots=True)
class Sweep:
    """End whatever of ours holds the lane's lock."""


@dataclass(frozen=True, slots=True)
class ClearFailures:
    """It has been ready for a minute: forget its revision's failures."""


Step = (
    Nothing
    | KeepWaiting
    | Start
    | MarkBlocked
    | MarkReady
    | CarryOn
    | BeginDrain
    | SendTerm
    | SendSecondTerm
    | SendKill
    | MarkStopped
    | MarkFailed
    | Sweep
    | ClearFailures
)
