"""What `llama-server --help` and `--version` say. Pure.

An option is a line that begins, after at most a few spaces, with its names, separated by commas
(common/arg.cpp, `common_arg::to_string`); what is said of it stands further right. Names that a
build has given up stay there only to say so.
"""

import re
from itertools import pairwise

MOST_VERSION = 100  # characters
_OPTION = re.compile(r" {0,8}(--?[A-Za-z][\w-]*(?:, *--?[A-Za-z][\w-]*)*)(?=[\s,]|$)(.*)")
_GONE = re.compile(r"argument has been removed")
_VERSION = re.compile(r"version: *(\S.*)")


def flags_of(text: str) -> frozenset[str]:
    """Every name of a flag that this build takes; empty when this is no such help."""
    found: set[str] = set()
    for line, following in pairwise((*text.splitlines(), "")):
        option = _OPTION.match(line)
        more = "" if _OPTION.match(following) else following  # of a row with many names
        if option and not _GONE.search(option[2] + more):
            found.update(re.split(r", *", option[1]))
    return frozenset(found) if "--port" in found else frozenset()


def version_of(text: str) -> str:
    """Such as `9596 (18ef86ece)`; else its first line, if it says anything."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [found[1] for line in lines if (found := _VERSION.match(line))]
    return (named or lines or [""])[0][:MOST_VERSION]
