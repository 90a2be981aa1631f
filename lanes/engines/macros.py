"""`${NAME}` in the words of a command: what SlotServe alone knows at each start. Pure.

${API_KEY} stands in variables only, since everyone on a host can read command lines; a program that
takes its key otherwise gets ${API_KEY_FILE}, the path of a file that only its user can read.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from lanes.engines.base import ServerSpec
from wire.words import said

KEY, KEY_FILE = "API_KEY", "API_KEY_FILE"
NAMES = ("PORT", "HOST", "MODEL", "NAME", "GPUS", "GPU_COUNT", "FOLDER", KEY_FILE, KEY)
_MACRO = re.compile(r"\$\{([^}]*)\}")


def values(spec: ServerSpec) -> dict[str, str]:
    """What each macro stands for at this start."""
    return {
        "PORT": str(spec.port),
        "HOST": spec.address,
        "MODEL": spec.model_path,
        "NAME": spec.alias,
        "GPUS": ",".join(spec.gpu_uuids),
        "GPU_COUNT": str(len(spec.gpu_uuids)),
        "FOLDER": spec.folder,
        KEY_FILE: key_path(spec),
        KEY: spec.api_key,
    }


def key_path(spec: ServerSpec) -> str:
    """Where the key's file is."""
    return str(Path(spec.folder) / "api-key")


def filled(words: Iterable[str], known: Mapping[str, str]) -> tuple[str, ...]:
    """The words with their macros replaced; one that is not known stays as it is."""
    return tuple(_MACRO.sub(lambda found: known.get(found[1], found[0]), word) for word in words)


def without_key(spec: ServerSpec) -> dict[str, str]:
    """The macros of a command line."""
    return {name: value for name, value in values(spec).items() if name != KEY}


def uses(words: Iterable[str], name: str) -> bool:
    """Whether this macro stands in one of the words."""
    return any(found == name for word in words for found in _MACRO.findall(word))


def objection(arguments: Iterable[str], variables: Mapping[str, str]) -> str:
    """Why these words cannot be filled in; empty: they can."""
    words = list(arguments)
    for found in _found((*words, *variables.values())):
        if found not in NAMES:
            known = ", ".join(f"${{{name}}}" for name in NAMES)
            return said("{macro} is not known: {names} are.", macro=f"${{{found}}}", names=known)
    if uses(words, KEY):
        return said(
            "Everyone on a host can read command lines: give the key by a variable "
            "(KEY=${{API_KEY}}) or a file (${{API_KEY_FILE}})."
        )
    return ""


def _found(words: Iterable[str]) -> list[str]:
    return [name for word in words for name in _MACRO.findall(word)]
