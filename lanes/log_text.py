"""Bytes of a model server's log as lines for people. Pure."""

import codecs
import re

LONGEST_LINE = 2000  # characters shown of one
# Colours and other escape sequences; then what no page and no terminal should be given: controls
# but the tab, marks that turn the direction of text, separators that are no newline.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC with its end
    r"|\x1b[ -/]*[0-Z\\^-~]"
)
_UNSHOWN = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)


def whole(data: bytes, *, is_over: bool, most: int) -> int:
    """How many of these bytes make whole lines: the rest waits for more.

    When nothing more comes (`is_over`) all of them; of a line that is longer than `most`, what is
    there, but no half character.
    """
    end = data.rfind(b"\n") + 1
    if is_over:
        return len(data)
    if end or len(data) < most:
        return end
    return data.rfind(b"\r") + 1 or len(data) - _half_character(data)


def tail_start(data: bytes, count: int, *, is_cut: bool) -> int:
    """Where the last `count` lines begin; data that begins amid a line (`is_cut`) loses that."""
    position = len(data) - 1 if data.endswith(b"\n") else len(data)
    for _ in range(count):
        position = data.rfind(b"\n", 0, position)
        if position < 0:
            return data.find(b"\n") + 1 if is_cut else 0
    return position + 1


def plain_lines(data: bytes) -> tuple[str, ...]:
    """The lines as plain text."""
    if not data:
        return ()
    text = data.decode(errors="replace")
    return tuple(plain(line) for line in text.removesuffix("\n").split("\n"))


def plain(line: str) -> str:
    """One line without colours and controls; of a line that writes over itself, its last state."""
    shown = line.rstrip("\r").rpartition("\r")[2]
    shown = _UNSHOWN.sub("", _ESCAPES.sub("", shown))
    if len(shown) <= LONGEST_LINE:
        return shown
    return f"{shown[:LONGEST_LINE]} … ({len(shown) - LONGEST_LINE} more characters)"


def _half_character(data: bytes) -> int:
    """How many bytes at the end are the beginning of a character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data[-8:])
    return len(decoder.getstate()[0])
