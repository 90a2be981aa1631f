"""A flag and its value in one word, as a shell line pasted into a list has them. Pure."""

import re
from collections.abc import Iterable, Sequence

from wire.words import said

_JOINED = re.compile(r"(--?[A-Za-z][\w.-]*)\s+(\S.*)", re.DOTALL)


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words with each such one made two, and the flags that it was done for."""
    rest, made, flags = list(words), [], []
    while rest:
        word = rest.pop(0)
        found = _JOINED.fullmatch(word)
        if found is None:
            made.append(word)
            continue
        made.append(found[1])
        flags.append(found[1])
        rest.insert(0, found[2].rstrip())
    return made, flags


def notes(flags: Iterable[str], kept: Sequence[str]) -> list[str]:
    """A sentence for each of those flags that is kept."""
    return [
        said(
            "{flag} and its value stood in one word and were made two: write them as two words.",
            flag=flag,
        )
        for flag in dict.fromkeys(flags)
        if flag in kept
    ]
