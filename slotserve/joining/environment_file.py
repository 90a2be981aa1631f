"""The file that holds a host's settings: NAME='value', read by systemd, by a shell and by us."""

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

NAME = re.compile(r"[A-Z][A-Z0-9_]*")
UNFIT = re.compile(r"['\x00-\x1f\x7f]")


class EnvironmentFileError(ValueError):
    """A setting cannot be written down; the text names it and says what to do."""


def write(path: Path, environment: Mapping[str, str]) -> None:
    """All of it or nothing, for its owner's eyes alone."""
    write_text(path, text_of(environment))


def text_of(environment: Mapping[str, str]) -> str:
    """What the file will hold."""
    return "".join(_line(name, value) for name, value in environment.items())


def write_text(path: Path, text: str) -> None:
    """A file for its owner's eyes alone: all of it or nothing; its folder is made."""
    path.parent.mkdir(mode=0o711, parents=True, exist_ok=True)  # servers' user passes through
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as out:
            out.write(text)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def read(path: Path) -> dict[str, str]:
    """What `write` wrote, with what an administrator has added in the same form."""
    found = {}
    for line in path.read_text().splitlines():
        name, is_setting, value = line.strip().partition("=")
        if is_setting and NAME.fullmatch(name):
            found[name] = "".join(shlex.split(value))
    return found


def _line(name: str, value: str) -> str:
    if not NAME.fullmatch(name) or UNFIT.search(value):
        raise EnvironmentFileError(
            f"{name} holds a character that no environment file can: write it as %27 and the like."
        )
    return f"{name}='{value}'\n"
