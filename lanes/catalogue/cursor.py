"""Going through a header from its beginning, a window at a time. Pure but for its source.

Nothing that a file says of lengths is believed: every step is held against the file's size and the
most that a header may be, and no more than one window is in memory.
"""

import re
import struct

from lanes.catalogue.facts import Source, UnreadableError, cut_short
from wire.words import said

WINDOW = 2**20
MOST_BYTES = 64 * 2**20  # the largest vocabularies of today need about a tenth
MOST_TEXT = 4096
U32, U64 = struct.Struct("<I"), struct.Struct("<Q")
# So many short texts with their lengths before them, for the regular expressions' fast loop: three
# times as fast as one by one. Usual lengths first; each is tried in turn.
_BLOCK_SIZE = 64
_BLOCK = re.compile(
    b"(?s:(?>%s)){%d}+"
    % (
        b"|".join(
            re.escape(U64.pack(length)) + b".{%d}" % length
            for length in sorted(range(49), key=lambda length: abs(length - 6))
        ),
        _BLOCK_SIZE,
    )
)


class Cursor:
    """A place in a file, moving forward."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._start = 0  # where in the file the window begins
        self._window = b""
        self._at = 0  # in the window

    @property
    def offset(self) -> int:
        """Where in the file it is."""
        return self._start + self._at

    def number(self, form: struct.Struct) -> int | float | bool:
        """The next number of this form."""
        self._see(form.size)
        value: int | float | bool = form.unpack_from(self._window, self._at)[0]
        self._at += form.size
        return value

    def whole(self, form: struct.Struct) -> int:
        """The next whole number of this form."""
        return int(self.number(form))

    def text(self) -> str:
        """The next text; of a long one its beginning."""
        length = self.whole(U64)
        kept = min(length, MOST_TEXT)
        self._see(kept)
        found = self._window[self._at : self._at + kept]
        self.skip(length)
        return found.decode("utf-8", "replace")

    def skip(self, length: int) -> None:
        """Go on by so many bytes without reading them."""
        self._move(self._at + length)

    def skip_texts(self, count: int) -> None:
        """Go on by so many texts. With a vocabulary this is most of a header's time."""
        while count:
            self._see(U64.size)
            block = _BLOCK.match(self._window, self._at) if count >= _BLOCK_SIZE else None
            if block:
                self._at = block.end()
                count -= _BLOCK_SIZE
            else:
                count -= self._skip_one_by_one(min(count, _BLOCK_SIZE))

    def _skip_one_by_one(self, count: int) -> int:
        """Go on by at most so many texts, while their lengths are in the window; how many."""
        window, at, done = self._window, self._at, 0
        last = len(window) - U64.size
        while done < count and at <= last:
            at += U64.size + U64.unpack_from(window, at)[0]
            done += 1
        self._move(at)
        return done

    def _move(self, at: int) -> None:
        """To a place in the window or beyond it."""
        self._check(self._start + at)
        if at <= len(self._window):
            self._at = at
        else:
            self._start, self._window, self._at = self._start + at, b"", 0

    def _see(self, length: int) -> None:
        """Have the next bytes in the window."""
        if self._at + length <= len(self._window):
            return
        offset = self.offset
        self._check(offset + length)
        self._window = self._source.read_at(offset, max(length, WINDOW))
        self._start, self._at = offset, 0
        if len(self._window) < length:  # cut off since it was opened
            raise cut_short(offset + len(self._window), offset + length)

    def _check(self, end: int) -> None:
        if end > self._source.size:
            raise cut_short(self._source.size, end)
        if end > MOST_BYTES:
            raise UnreadableError(
                said("Its header is over {most} MiB: no model's is.", most=MOST_BYTES >> 20)
            )
