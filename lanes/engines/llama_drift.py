"""Flags differ from llama-server to llama-server: a preset's words as a build takes them. Pure.

A name that a build does not know ends it with "invalid argument". Where an option is the same under
another name it is given under that; how a model is read into memory has changed its form altogether
(`--no-mmap` and its like became `--load-mode`). Everything else is only told.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lanes.engines.llama_flags import flag_name, is_flag, is_owned
from wire.words import Words, said

# Names of one and the same option, with the same kind of value.
_GROUPS = (
    "-m --model",
    "-a --alias",
    "--embedding --embeddings",
    "--rerank --reranking",
    "--ui --webui",
    "--no-ui --no-webui",
    "--spec-draft-n-max --draft-max --draft --draft-n",
    "--spec-draft-n-min --draft-min --draft-n-min",
    "--spec-draft-p-min --draft-p-min",
    "--spec-draft-p-split --draft-p-split",
    "--spec-draft-model --model-draft -md",
    "--spec-draft-device --device-draft -devd",
    "--spec-draft-ngl --gpu-layers-draft --n-gpu-layers-draft -ngld",
    "--spec-draft-type-k --cache-type-k-draft -ctkd",
    "--spec-draft-type-v --cache-type-v-draft -ctvd",
)
_TWINS: Mapping[str, tuple[str, ...]] = {
    name: tuple(group.split()) for group in _GROUPS for name in group.split()
}
NAME = "--alias"
_MODE = "--load-mode"
_MODE_NAMES = frozenset({_MODE, "-lm"})
_SWITCHES: Mapping[str, tuple[str, bool]] = {
    "--mmap": ("mmap", True),
    "--no-mmap": ("mmap", False),
    "--mlock": ("mlock", True),
    "--direct-io": ("dio", True),
    "-dio": ("dio", True),
    "--no-direct-io": ("dio", False),
    "-ndio": ("dio", False),
}
_AS_SWITCHES: Mapping[str, tuple[str, ...]] = {
    "auto": (),
    "mmap": (),
    "none": ("--no-mmap",),
    "mlock": ("--no-mmap", "--mlock"),
    "mmap+mlock": ("--mlock",),
    "dio": ("--direct-io",),
}
_LIKENESS = 0.6  # of a name that somebody may have meant


@dataclass(frozen=True, slots=True)
class Fitted:
    """The words for this build, what was put differently, and names that it does not know."""

    words: tuple[str, ...]
    changed: tuple[tuple[str, str], ...] = ()  # what the preset says, what is given instead
    unknown: tuple[str, ...] = ()


def fitted(words: Sequence[str], flags: frozenset[str]) -> Fitted:
    """The words as a build with these flags takes them; as they are when nobody knows its flags."""
    if not flags:
        return Fitted(tuple(words))
    changed: list[tuple[str, str]] = []
    named = [_renamed(word, flags, changed) for word in words]
    named = _with_mode(named, flags, changed)
    named = _with_switches(named, flags, changed)
    unknown = [flag_name(word) for word in named if is_flag(word) and not _knows(flags, word)]
    return Fitted(tuple(named), tuple(changed), tuple(dict.fromkeys(unknown)))


def named(alias: str, flags: frozenset[str]) -> tuple[str, ...]:
    """The server's name as this build takes it; nothing when it takes none: it serves without."""
    found = fitted((NAME, alias), flags)
    return () if found.unknown else found.words


def notes(words: Sequence[str], flags: frozenset[str], program: str) -> list[str]:
    """For the preset's author: what this program, with version and host, makes of the words."""
    found = fitted(words, flags)
    nameless = said(
        "{program} has no {flag}: it is started without a name.", program=program, flag=NAME
    )
    told: list[str] = [] if named("x", flags) else [nameless]
    told += [
        said("{program} does not know {flag}: {now}.", program=program, flag=was, now=_given(now))
        for was, now in found.changed
    ]
    return told + [_unknown(name, words, flags, program) for name in found.unknown]


def _renamed(word: str, flags: frozenset[str], changed: list[tuple[str, str]]) -> str:
    name = flag_name(word)
    if not is_flag(word) or (word != name and "=" in word) or _knows(flags, word):
        return word
    twin = next((each for each in _TWINS.get(name, ()) if each in flags), None)
    if twin is None:
        return word
    changed.append((name, twin))
    return twin


def _with_mode(
    words: list[str], flags: frozenset[str], changed: list[tuple[str, str]]
) -> list[str]:
    """The old switches as one mode, where the build has that and lacks one of them."""
    said = [name for name in map(flag_name, words) if name in _SWITCHES]
    if _MODE not in flags or all(name in flags for name in said):
        return words
    rest = [word for word in words if flag_name(word) not in _SWITCHES]
    if any(flag_name(word) in _MODE_NAMES for word in rest):
        changed.append((" ".join(said), ""))
        return rest
    is_on = {"mmap": True, "mlock": False, "dio": False} | dict(_SWITCHES[name] for name in said)
    parts = [name for name in ("mmap", "mlock") if is_on[name]]
    mode = "dio" if is_on["dio"] else "+".join(parts) or "none"
    changed.append((" ".join(said), f"{_MODE} {mode}"))
    return [*rest, _MODE, mode]


def _with_switches(
    words: list[str], flags: frozenset[str], changed: list[tuple[str, str]]
) -> list[str]:
    """A mode as the old switches, where the build does not have it and takes them."""
    if _MODE_NAMES & flags:
        return words
    place = next((at for at, word in enumerate(words[:-1]) if flag_name(word) in _MODE_NAMES), None)
    switches = None if place is None else _AS_SWITCHES.get(words[place + 1])
    if place is None or switches is None or not flags.issuperset(switches):
        return words
    changed.append((" ".join(words[place : place + 2]), " ".join(switches)))
    return [*words[:place], *switches, *words[place + 2 :]]


def _knows(flags: frozenset[str], word: str) -> bool:
    """A value joined to its flag by "=" makes another name of it, which no build knows."""
    return flag_name(word) in flags and not re.match(r"--?[A-Za-z][\w-]*=", word)


def _given(words: str) -> str:
    if not words:
        return said("it is left out, which comes to the same")
    return said("{words} is given in its place", words=words)


def _unknown(name: str, words: Sequence[str], flags: frozenset[str], program: str) -> Words:
    if name in flags:
        return said(
            "{program} does not know {flag}=…: write {flag} and its value as two arguments.",
            program=program,
            flag=name,
        )
    known = sorted(flag for flag in flags if not is_owned(flag))
    beginning = [flag for flag in known if flag.startswith(f"{name}-")]
    near = beginning or difflib.get_close_matches(name, known, n=1, cutoff=_LIKENESS)
    if not near:
        return said("{program} does not know {flag}.", program=program, flag=name)
    return said(
        "{program} does not know {flag}; the nearest that it knows is {nearest}.",
        program=program,
        flag=name,
        nearest=near[0],
    )
