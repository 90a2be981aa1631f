"""What changed from one revision of a preset to the next, flag by flag. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lanes.secret_names import shown

_FLAG = re.compile(r"--?[A-Za-z]")  # a negative number is a value
FIELDS = frozenset({"model", "engine", "image", "argument", "order", "variable", "option", "alias"})
LOOSE = ""  # the name of words that belong to no flag


class Content(Protocol):
    """What is compared: a `PresetRevision`, or anything with its attributes."""

    model_file_id: int
    engine: str
    arguments: list[str]
    environment: dict[str, str]
    options: dict[str, Any]
    image: str
    aliases: list[str]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. None: it was not there before, or is not there any more.

    `field` is one of FIELDS.
    """

    field: str
    name: str
    old: str | None
    new: str | None


def changes(old: Content, new: Content) -> tuple[Change, ...]:
    """Every difference, in the order in which a preset is read; values of secrets are masked."""
    found = [
        *_one("model", str(old.model_file_id), str(new.model_file_id)),
        *_one("engine", old.engine, new.engine),
        *_one("image", old.image or None, new.image or None),
        *_arguments(old.arguments, new.arguments),
        *_variables(old.environment, new.environment),
        *_named("option", _texts(old.options), _texts(new.options)),
        *_named("alias", dict.fromkeys(old.aliases, ""), dict.fromkeys(new.aliases, "")),
    ]
    return tuple(found)


def by_flag(arguments: Sequence[str]) -> dict[str, str]:
    """The values of each flag in one text; a flag that comes twice has both."""
    found: dict[str, list[str]] = {}
    flag = LOOSE
    for word in arguments:
        if _FLAG.match(word):
            flag, equals, value = word.partition("=")
            found.setdefault(flag, []).extend([value] if equals else [])
        else:
            found.setdefault(flag, []).append(word)
    return {name: " ".join(values) for name, values in found.items()}


def _arguments(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    found = _named("argument", by_flag(old), by_flag(new))
    is_order = not found and list(old) != list(new)
    return [Change("order", "", " ".join(old), " ".join(new))] if is_order else found


def _variables(old: Mapping[str, str], new: Mapping[str, str]) -> list[Change]:
    return [
        Change(
            each.field,
            each.name,
            None if each.old is None else shown(each.name, each.old),
            None if each.new is None else shown(each.name, each.new),
        )
        for each in _named("variable", old, new)
    ]


def _named(field: str, old: Mapping[str, str], new: Mapping[str, str]) -> list[Change]:
    """What is gone or different in the old order, then what is new."""
    names = [*old, *(name for name in new if name not in old)]
    return [
        Change(field, name, old.get(name), new.get(name))
        for name in names
        if old.get(name) != new.get(name)
    ]


def _one(field: str, old: str | None, new: str | None) -> list[Change]:
    return [] if old == new else [Change(field, "", old, new)]


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(value) for name, value in options.items() if value not in (None, "", [])}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
