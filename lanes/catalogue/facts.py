"""What a model file's header says, and what keeps it from being read. Pure."""

from dataclasses import dataclass
from typing import Protocol

from wire.words import Words, said

MOST = 2**63 - 1  # what the database's columns hold
LONGEST_WORD = 64


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a model without loading it; None and "" where its header is silent."""

    architecture: str = ""
    parameters: int | None = None
    quantisation: str = ""
    context_length: int | None = None
    vocabulary_size: int | None = None
    has_chat_template: bool | None = None


class Source(Protocol):
    """A file's bytes. A hostile one may say anything, and may end anywhere."""

    @property
    def size(self) -> int:
        """Its length when it was opened."""

    def read_at(self, offset: int, length: int) -> bytes:
        """These bytes, or fewer where the file ends."""


class UnreadableError(Exception):
    """A file cannot be used as a model. `words` is a sentence for people."""

    def __init__(self, words: Words) -> None:
        super().__init__(words)
        self.words = words


class UnreachableError(UnreadableError):
    """The disk or its permissions are in the way; that may change while the file stays as it is."""


class CutShortError(UnreadableError):
    """The file ends before what its header promises: it is being copied, or the copy broke off."""


def cut_short(present: int, promised: int) -> CutShortError:
    """The words for a file that is too short."""
    have, want = in_words(present), in_words(promised)
    return CutShortError(
        said(
            "{have} of {want} are there: it is still being copied, or the copy broke off and has "
            "to be made again.",
            have=have,
            want=want,
        )
    )


def in_words(count: int) -> str:
    """A number of bytes, as disks and downloads count them."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB" if value < 10**6 else "far too much"


def count_or_none(value: object) -> int | None:
    """A whole number that can be stored; anything else is no answer."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 < value <= MOST else None


def word(value: object, longest: int = LONGEST_WORD) -> str:
    """A short text without control characters; anything else is no answer."""
    if not isinstance(value, str):
        return ""
    storable = value[:longest].encode("utf-8", "replace").decode()
    return "".join(each for each in storable if each.isprintable()).strip()
