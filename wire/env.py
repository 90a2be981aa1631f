"""Readers of environment variables that fail loudly, with the variable's name and what it takes."""

import os
from pathlib import Path


class SettingError(ValueError):
    """A setting has a value that cannot be used; the text names it and says what it takes."""


def read_text(name: str, default: str = "") -> str:
    """The variable's text, or the default when it is unset or empty."""
    return os.environ.get(name, "").strip() or default


def read_number(name: str, default: float, *, least: float = 0.0) -> float:
    """A number (seconds, megabytes …) of at least `least`."""
    raw = read_text(name)
    if not raw:
        return default
    try:
        value = float(raw)
    except ValueError:
        raise SettingError(f"{name}={raw!r} is not a number: give one, such as {default}") from None
    if not value >= least or value == float("inf"):
        raise SettingError(f"{name}={raw!r} is out of range: at least {least:g} is needed")
    return value


def read_whole(name: str, default: int, *, least: int = 0) -> int:
    """A whole number of at least `least`."""
    value = read_number(name, default, least=least)
    if value != int(value):
        raise SettingError(f"{name}={value!r} is not a whole number: give one, such as {default}")
    return int(value)


def read_flag(name: str, *, default: bool) -> bool:
    """1/true/yes/on or 0/false/no/off."""
    raw = read_text(name).lower()
    if not raw:
        return default
    if raw in {"1", "true", "yes", "on"}:
        return True
    if raw in {"0", "false", "no", "off"}:
        return False
    raise SettingError(f"{name}={raw!r} is neither yes nor no: give 1 or 0")


def read_list(name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Comma-separated words."""
    raw = read_text(name)
    return tuple(word.strip() for word in raw.split(",") if word.strip()) if raw else default


def read_path(name: str, default: Path) -> Path:
    """A file or folder, made absolute; `~` is the user's home."""
    raw = read_text(name)
    return (Path(raw).expanduser() if raw else default).absolute()
