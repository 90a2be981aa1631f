"""Of an answer on its way, the few bytes that may hold its token counts; never the answer itself.

`add` is called for each chunk of each stream, so it keeps references and copies next to nothing.
"""

from collections.abc import Iterable
from typing import Protocol

from gateway.edge.headers import find
from gateway.edge.token_counts import (
    NOTHING,
    OBJECT_BYTES,
    UNKNOWN,
    Found,
    TokenCounts,
    last_timings,
    last_usage,
    read_counts,
    split_start,
)

TAIL_BYTES = 4096  # at least so many of a stream's last bytes, at most about twice
_OVERLAP_BYTES = OBJECT_BYTES + 16  # an object with its key
_SEARCH_BYTES = 65_536
_EVENT_END = b"\n\n"


class Tail(Protocol):
    """What is kept of an answer while it passes."""

    def add(self, chunk: bytes) -> None:
        """The next bytes of the answer."""

    def ends_event(self) -> bool:
        """Whether the last event of a stream is complete."""

    def counts(self) -> TokenCounts:
        """What the answer has said of its tokens so far; asked again, it does not look again."""

    @property
    def events(self) -> int:
        """Events of a stream so far, comments with them."""


def tail_for(headers: Iterable[tuple[bytes, bytes]]) -> Tail:
    """The tail of an answer with this head; only JSON and event streams are looked at."""
    kind = (find(headers, b"content-type") or b"").lower()
    if kind.startswith(b"text/event-stream"):
        return StreamTail()
    return BodyTail() if kind.startswith(b"application/json") else NoTail()


class NoTail:
    """Of sound, pictures and plain text, in which anybody's words could pass for counts."""

    events = 0

    def add(self, chunk: bytes) -> None:
        """Nothing is kept."""

    def ends_event(self) -> bool:
        """It is no stream."""
        return True

    def counts(self) -> TokenCounts:
        """Nobody has said."""
        return UNKNOWN


class StreamTail:
    """Of an event stream: what its first event says, and its last bytes."""

    def __init__(self) -> None:
        self.events = 0
        self._older: list[bytes] = []
        self._newest: list[bytes] = []
        self._size = 0  # of the newest
        self._start: Found | None = None  # once the first bytes are no longer kept
        self._counts: TokenCounts | None = None  # of all that has come

    def add(self, chunk: bytes) -> None:
        """Two lists take turns: the older goes when the newest is long enough to stand alone."""
        self._counts = None
        self.events += chunk.count(_EVENT_END)
        self._newest.append(chunk)
        self._size += len(chunk)
        if self._size >= TAIL_BYTES:
            self._turn()

    def ends_event(self) -> bool:
        """Whether the last event is complete."""
        text = b"".join((*self._older, *self._newest))
        return not text or text.endswith((_EVENT_END, b"\r\n\r\n"))

    def counts(self) -> TokenCounts:
        """Read from what is kept."""
        if self._counts is None:
            self._counts = self._read()
        return self._counts

    def _read(self) -> TokenCounts:
        text = b"".join((*self._older, *self._newest))
        start, rest = (self._start, text) if self._start is not None else split_start(text)
        usage = last_usage(rest)
        return read_counts({**start, **usage} if start else usage, last_timings(rest))

    def _turn(self) -> None:
        if self._start is None:
            self._start, rest = split_start(b"".join(self._newest))
            self._newest = [rest]
        elif self._size > 2 * TAIL_BYTES:
            self._newest = [b"".join(self._newest)[-TAIL_BYTES:]]
        self._older, self._newest, self._size = self._newest, [], 0


class BodyTail:
    """Of a JSON answer in one piece: its objects of counts, wherever they stand in it.

    A list of embeddings has them before its megabytes of numbers, a chat after its text.
    """

    events = 0

    def __init__(self) -> None:
        self._usage: Found = NOTHING
        self._timings: Found = NOTHING
        self._kept: list[bytes] = []  # not yet searched, and what an object may have begun in
        self._size = 0
        self._counts: TokenCounts | None = None  # of all that has come

    def add(self, chunk: bytes) -> None:
        """Small answers are searched once, at their end."""
        self._counts = None
        self._kept.append(chunk)
        self._size += len(chunk)
        if self._size >= _SEARCH_BYTES:
            self._search()

    def ends_event(self) -> bool:
        """It is no stream."""
        return True

    def counts(self) -> TokenCounts:
        """Found so far."""
        if self._counts is None:
            self._search()
            self._counts = read_counts(self._usage, self._timings)
        return self._counts

    def _search(self) -> None:
        """Look through what has come; its end may hold the beginning of an object."""
        text = b"".join(self._kept)
        self._usage = last_usage(text) or self._usage
        self._timings = last_timings(text) or self._timings
        self._kept = [text[-_OVERLAP_BYTES:]]
        self._size = 0
