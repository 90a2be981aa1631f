"""Finds English on German pages: whole texts that the catalogues say otherwise in German."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import allauth
import django
from babel.messages.pofile import read_po

from slotserve.stack.parts import ROOT

OURS = ROOT / "locale/de/LC_MESSAGES/django.po"
THEIRS = [
    Path(django.__file__).parent / "conf/locale/de/LC_MESSAGES/django.po",
    Path(django.__file__).parent / "contrib/admin/locale/de/LC_MESSAGES/django.po",
    Path(django.__file__).parent / "contrib/auth/locale/de/LC_MESSAGES/django.po",
    Path(allauth.__file__).parent / "locale/de/LC_MESSAGES/django.po",
]
PLACE = re.compile(r"%\(\w+\)[-.\d]*[a-z]|%[sd]|\{\w*(?:![rs])?(?::[^}]*)?\}|<[^>]+>")
LETTER = re.compile(r"[^\W\d_]")
FEWEST_LETTERS = 10  # of a text beside its places: "{one} and {other}" may be anything
# Words that only English sentences have: one that is the same in both languages is not translated.
ENGLISH = re.compile(r"\b(the|is|of|and|with|to|for|not|are|by|on|your|you|this|that|be|from|it)\b")
FEWEST_WORDS = 3
# Texts that are read, each by itself, and the attributes that are.
READ = """() => {
  const told = [], other = "[lang]:not(html), [translate=no]";
  const silent = "script, style, code, pre, kbd, textarea, " + other;
  const walk = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const parent = walk.currentNode.parentElement;
    if (!parent.closest(silent)) told.push(walk.currentNode.textContent);
  }
  for (const name of ["title", "aria-label", "placeholder", "alt", "data-confirm", "data-words"]) {
    for (const each of document.querySelectorAll(`[${name}]`)) {
      if (!each.closest(other)) told.push(each.getAttribute(name));
    }
  }
  return told.map((text) => text.replace(/\\s+/g, " ").trim()).filter(Boolean);
}"""


@dataclass(frozen=True, slots=True)
class English:
    """Texts that German says otherwise: those without places, and the others as patterns."""

    whole: frozenset[str]
    patterns: tuple[re.Pattern[str], ...]

    def among(self, texts: Iterable[str]) -> set[str]:
        """Those of these texts that are English."""
        return {text for text in texts if self.has(text)}

    def has(self, text: str) -> bool:
        """Whether this is one of them."""
        return text in self.whole or any(each.fullmatch(text) for each in self.patterns)


@cache
def english() -> English:
    """Of all catalogues, but for what any of them says in German by the same words."""
    pairs = [pair for path in [OURS, *THEIRS] if path.is_file() for pair in _pairs(path)]
    german = {translated for _, translated in pairs}
    texts = {text for text, translated in pairs if text != translated} - german
    plain = {text for text in texts if not PLACE.search(text)}
    patterns = [_pattern(text) for text in sorted(texts - plain) if _is_telling(text)]
    return English(frozenset(plain), tuple(patterns))


def is_sentence(text: str) -> bool:
    """Whether it must be English."""
    return len(text.split()) >= FEWEST_WORDS and bool(ENGLISH.search(text))


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    with path.open("rb") as file:
        messages = [message for message in read_po(file, locale="de") if message.id]
    for message in messages:
        for text, translated in zip(_forms(message.id), _forms(message.string), strict=False):
            if translated:
                yield _one_line(text), _one_line(translated)


def _forms(texts: str | Sequence[str] | None) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts or ())


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _is_telling(text: str) -> bool:
    return len(LETTER.findall(PLACE.sub("", text))) >= FEWEST_LETTERS


def _pattern(text: str) -> re.Pattern[str]:
    """The text with anything in its places."""
    return re.compile(".+?".join(re.escape(part) for part in PLACE.split(text.replace("%%", "%"))))
