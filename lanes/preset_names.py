"""The names that callers use for presets: each leads to one."""

import re

from lanes.models import Preset
from lanes.refusals import Refusal
from wire.words import said

LOADED_NOW = "auto"  # callers name it to mean whatever is loaded
MOST_ALIASES = 20
_ALIAS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}")


def names_of(preset: Preset) -> list[str]:
    """All names that callers may use for it."""
    return [preset.slug, *(preset.current.aliases if preset.current else [])]


def check_aliases(value: object) -> list[str] | Refusal:
    """The aliases once each, in their order."""
    if not isinstance(value, list | tuple) or len(value) > MOST_ALIASES:
        return Refusal(
            "bad_aliases",
            said("Aliases are a list of at most {most} names.", most=MOST_ALIASES),
        )
    for alias in value:
        if not isinstance(alias, str) or not _ALIAS.fullmatch(alias):
            return Refusal(
                "bad_aliases",
                said(
                    "{alias!r} cannot be a model's name: letters, digits and . _ : / @ + - can.",
                    alias=alias,
                ),
            )
    return list(dict.fromkeys(value))


def taken(slug: str, aliases: list[str]) -> Refusal | None:
    """Every name leads to one preset; `auto` to none."""
    wanted = {name.lower() for name in (slug, *aliases)}
    if LOADED_NOW in wanted:
        return Refusal(
            "name_taken",
            said("{name} means whatever is loaded: take another name.", name=LOADED_NOW),
        )
    for other in Preset.objects.exclude(slug=slug).select_related("current"):
        for name in names_of(other):
            if name.lower() in wanted:
                return Refusal(
                    "name_taken",
                    said("{name} is a name of the preset {other}.", name=name, other=other.slug),
                )
    return None
