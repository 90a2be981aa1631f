"""What a check finds."""

from dataclasses import dataclass
from enum import StrEnum

from django.utils.text import get_text_list
from django.utils.translation import get_language, gettext


class Level(StrEnum):
    """How it stands, from good to bad."""

    OK = "ok"
    UNKNOWN = "unknown"  # what it depends on has trouble of its own
    WARNING = "warning"
    TROUBLE = "trouble"


_GRAVITY = tuple(Level)
_NAMES = ("Valkey",)


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's answer: a sentence, and what to do when not all is well."""

    check: str  # stable, for programs
    title: str
    level: Level
    sentence: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Named:
    """A check's name; makes its findings."""

    check: str
    title: str  # `marked`

    def ok(self, sentence: str) -> Finding:
        """All is well."""
        return Finding(self.check, gettext(self.title), Level.OK, sentence)

    def unknown(self, sentence: str) -> Finding:
        """It could not be looked at, for a reason that another check tells of."""
        return Finding(self.check, gettext(self.title), Level.UNKNOWN, sentence)

    def warning(self, sentence: str, advice: str) -> Finding:
        """It will become trouble, or is trouble for some."""
        return Finding(self.check, gettext(self.title), Level.WARNING, sentence, advice)

    def trouble(self, sentence: str, advice: str) -> Finding:
        """Somebody should act now."""
        return Finding(self.check, gettext(self.title), Level.TROUBLE, sentence, advice)


def has_trouble(findings: list[Finding]) -> bool:
    """Whether the command's exit status is 1."""
    return any(finding.level == Level.TROUBLE for finding in findings)


def verdict(findings: list[Finding]) -> str:
    """One sentence on all of it."""
    troubles = [_in_sentence(f.title) for f in findings if f.level == Level.TROUBLE]
    warnings = [_in_sentence(f.title) for f in findings if f.level == Level.WARNING]
    if troubles:
        return gettext("Trouble with %(names)s.") % {"names": _listed(troubles)}
    if warnings:
        return gettext("Nothing is broken; look at %(names)s.") % {"names": _listed(warnings)}
    return gettext("All is well.")


def worst_first(findings: list[Finding]) -> list[Finding]:
    """As a person wants to read them; of one level, as they were."""
    return sorted(findings, key=lambda finding: -_GRAVITY.index(finding.level))


def _in_sentence(title: str) -> str:
    is_english = (get_language() or "en").startswith("en")  # German nouns keep their capitals
    return title.lower() if is_english and title not in _NAMES else title


def _listed(words: list[str]) -> str:
    return get_text_list(words, gettext("and"))
