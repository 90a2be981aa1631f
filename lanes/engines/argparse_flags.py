"""Stripping owned flags from the words of a program that reads them with Python's argparse. Pure.

argparse takes `--name value`, `--name=value` and any beginning of a name that no other shares;
vLLM's parser takes `_` for `-` besides and sets members of JSON by `--name.member`. A flag may take
several values, and a word that no flag takes is positional (vLLM's model). So everything that
follows an owned flag goes with it, up to the next flag, and so do words before the first flag and
`--`, after which all words are positional. A beginning that several flags share ends the program
with an error, so it does no harm to leave out what might have been owned.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lanes.engines import joined
from wire.words import Words, said

_FLAG = re.compile(r"--?[A-Za-z]")
_JOINED = re.compile(r"[=\s]")  # between a flag and its value in one text
_SHORTEST = len("--h")


@dataclass(frozen=True, slots=True)
class OwnedFlags:
    """Why each flag is SlotServe's; families are expressions for those that grow from version to
    version."""

    reasons: dict[str, str]
    families: tuple[tuple[str, re.Pattern[str]], ...] = ()

    def without(self, given: Sequence[str]) -> tuple[list[str], list[str]]:
        """The words that may reach the program, in their order, and a note for each other flag."""
        kept: list[str] = []
        notes: list[str] = []
        takes = False  # whether the flag before is one that is kept: words are its values
        words, made_two = joined.split(given)
        for word in words:
            if word != "--" and not _FLAG.match(word):
                if takes:
                    kept.append(word)
                elif not notes:  # else it went with an owned flag, and may be a key
                    notes.append(
                        said("What stands before the first flag was left out: write flags.")
                    )
                continue
            name = flag_name(word)
            why = (
                self.reason(name)
                if word != "--"
                else said("all words after it would be positional")
            )
            takes = why is None
            if why is None:
                kept.append(word)
            else:
                notes.append(said("{name} was left out: {why}.", name=name, why=why))
        return kept, [*notes, *joined.notes(made_two, kept)]

    def reason(self, name: str) -> Words | None:
        """Why this flag is SlotServe's; None when it is not."""
        if name in self.reasons:
            return said(self.reasons[name])
        if name.startswith("--") and len(name) >= _SHORTEST:
            for owned, why in self.reasons.items():
                if owned.startswith(name):
                    return said("it may stand for {flag}, and {why}", flag=owned, why=said(why))
        return next((said(why) for why, family in self.families if family.fullmatch(name)), None)


def owned(*reasons: tuple[str, str], families: Iterable[tuple[str, str]] = ()) -> OwnedFlags:
    """From pairs of a reason and its flags, and of a reason and an expression."""
    by_name = {name: why for why, names in reasons for name in names.split()}
    return OwnedFlags(by_name, tuple((why, re.compile(text)) for why, text in families))


def flag_name(word: str) -> str:
    """The flag as the program knows it: without value and member, `-` for `_`."""
    name = _JOINED.split(word, maxsplit=1)[0]
    return name.partition(".")[0].replace("_", "-") if name.startswith("--") else name


def value_of(arguments: Sequence[str], *names: str) -> str | None:
    """The value of the last of these flags, written in full."""
    found = None
    for position, word in enumerate(arguments):
        if flag_name(word) in names:
            _, is_joined, joined = word.partition("=")
            after = arguments[position + 1] if position + 1 < len(arguments) else None
            found = joined if is_joined else after
    return found


def has_flag(arguments: Sequence[str], *names: str) -> bool:
    """Whether one of these flags, written in full, is there."""
    return any(flag_name(word) in names for word in arguments if _FLAG.match(word))


def whole_number(text: str | None) -> int | None:
    """A count from one up, also as vLLM writes it (4k, 32K, 1M); None for anything else."""
    found = re.fullmatch(r"(\d{1,9})([kKmM]?)", text or "", re.ASCII)
    if found is None:
        return None
    factor = {"": 1, "k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20}[found[2]]
    number = int(found[1]) * factor
    return number if 0 < number < 2**31 else None
