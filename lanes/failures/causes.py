"""The shapes of failures: what is known, what an engine knows to say of it, what comes out. Pure.

An engine's module says how its program's log is read:

    WORDS = FailureWords(
        program="vllm",
        gpu_memory="Lower --gpu-memory-utilization or --max-model-len.",
        host_memory="Lower --swap-space.",
        patterns=(
            pattern(Kind.GPU_MEMORY, r"No available memory for the cache blocks",
                    "The GPU has no memory left for the cache."),
        ),
    )
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from wire.words import kept_of, said

LONGEST = 500  # characters of a sentence, a line and an advice, as the columns hold them
# An argument's name in an expression, never a value: members read what a pattern captures.
NAME = r"(--?[^\s=:'\"]+)(?=[\s=]|$)"


class Kind(StrEnum):
    """What kind of failure it is: a word for programs."""

    GPU_MEMORY = "gpu_memory"
    GPU_TAKEN = "gpu_taken"  # processes of others hold the card's memory; nothing was started
    HOST_MEMORY = "host_memory"
    SHARED_MEMORY = "shared_memory"
    DISK_FULL = "disk_full"
    FILE_MISSING = "file_missing"
    FILE_BROKEN = "file_broken"
    UNSUPPORTED = "unsupported"  # this build does not know the model, or the card
    ARGUMENT = "argument"  # unknown flag, or a value that is not taken
    PORT_TAKEN = "port_taken"
    ACCESS = "access"  # a licence, a token or a download is needed
    DRIVER = "driver"  # none, too old, or it shows no card
    GPU_FAULT = "gpu_fault"  # the card or its driver gave up
    PROGRAM = "program"  # the program or a part of it is not there
    INSTRUCTION = "illegal_instruction"
    TIMEOUT = "timeout"
    CRASH = "crash"
    UNKNOWN = "unknown"

    @classmethod
    def named(cls, name: str) -> "Kind":
        """The kind of this name; unknown when there is none."""
        try:
            return cls(name)
        except ValueError:
            return cls.UNKNOWN


def joined(*texts: str) -> str:
    """Sentences one after the other, each with its end; empty ones are left out."""
    ended = [
        text if text[-1] in ".!?…" else said("{sentence}.", sentence=text) for text in texts if text
    ]
    if not ended:
        return ""
    whole = ended[0]
    for text in ended[1:]:
        whole = said("{first} {second}", first=whole, second=text)
    return whole


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a server failed. `line` is where it was read; empty: nothing was written about it."""

    kind: Kind
    sentence: str
    line: str = ""
    advice: str = ""

    @property
    def columns(self) -> dict[str, object]:
        """As runtimes and failures keep it."""
        return {
            "reason": self.sentence[:LONGEST],
            "failure_kind": self.kind.value,
            "failure_line": self.line[:LONGEST],
            "failure_advice": self.advice[:LONGEST],
            "words": {"reason": kept_of(self.sentence), "advice": kept_of(self.advice)},
        }

    @property
    def words(self) -> str:
        """The sentence and what to try, for where there is room for one text only."""
        return joined(self.sentence, self.advice)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One text of a log and what it means.

    `sentence` and `advice` may hold {0}, {1} … for the expression's groups and {program}. Without
    an advice the kind's own is given.
    """

    kind: Kind
    expression: re.Pattern[str]
    sentence: str
    advice: str = ""


def pattern(kind: Kind, expression: str, sentence: str, advice: str = "") -> Pattern:
    """A pattern of this regular expression, which is searched for in each line."""
    return Pattern(kind, re.compile(expression), sentence, advice)


@dataclass(frozen=True, slots=True)
class FailureWords:
    """What an engine adds to the reading of a failure.

    Its patterns are asked before the common ones, in their order: causes stand before what follows
    from them; `late_patterns` after all others, for what only says that something failed.
    `harmless` are lines that hold words of a failure though the server goes on.
    `error_lines`: how its log marks an error.
    """

    program: str
    gpu_memory: str  # what to try when the card's memory is full
    host_memory: str  # … the host's
    patterns: tuple[Pattern, ...] = ()
    late_patterns: tuple[Pattern, ...] = ()
    harmless: re.Pattern[str] | None = None
    error_lines: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one failure."""

    log_tail: str
    exit_status: int | None = None  # minus the signal's number when one ended it; None: it lives
    killed_line: str = ""  # the kernel's own line: it killed this server for want of memory
    memory_kills: int = 0  # how many processes around it the kernel so killed while it ran
    waited: float | None = None  # seconds after which it was given up without being ready
