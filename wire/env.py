"""Readers of environment variables that fail loudly, with the variable's name and what it takes."""

import ipaddress
import os
from collections.abc import Collection
from pathlib import Path
from urllib.parse import urlsplit

from wire.zones import zone_named


class SettingError(ValueError):
    """A setting has a value that cannot be used; the text names it and says what it takes."""


def read_text(name: str, default: str = "") -> str:
    """The variable's text, or the default when it is unset or empty."""
    return os.environ.get(name, "").strip() or default


def read_secret(name: str, default: str = "") -> str:
    """As `read_text`; or the text of the file that NAME_FILE names, as container engines give it.

    SettingError when both are set, or when the file cannot be read or is empty.
    """
    file = read_text(f"{name}_FILE")
    if not file:
        return read_text(name, default)
    if read_text(name):
        raise SettingError(f"{name} and {name}_FILE are both set: keep one of them")
    try:
        text = Path(file).read_text().strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingError(f"{name}_FILE={file!r} cannot be read: {reason}") from None
    if not text:
        raise SettingError(f"{name}_FILE={file!r} is empty: put the secret into it")
    return text


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


def read_time_zone(name: str, default: str) -> str:
    """A time zone's name, such as Europe/Berlin. A machine that knows none passes all: the
    self-check tells."""
    zone = read_text(name, default)
    if zone_named(zone) is None and zone_named(default) is not None:
        raise SettingError(f"{name}={zone!r} is no time zone: give one, such as Europe/Berlin")
    return zone


def read_address(name: str, default: str = "") -> str:
    """An address of pages or of the API, such as https://gpu.example.org; or nothing."""
    address = read_text(name, default)
    if address and not _is_address(address):
        raise SettingError(
            f"{name}={address!r} is no address: give one, such as https://gpu.example.org"
        )
    return address


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    is_plain = not (parts.query or parts.fragment or any(letter.isspace() for letter in text))
    return parts.scheme in ("http", "https") and bool(parts.hostname) and is_plain


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


def read_choice(name: str, choices: Collection[str], default: str) -> str:
    """One of these words."""
    raw = read_text(name, default).lower()
    if raw not in choices:
        raise SettingError(f"{name}={raw!r} is none of {', '.join(choices)}: give one of them")
    return raw


def read_list(name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Comma-separated words."""
    raw = read_text(name)
    return split_list(raw) if raw else default


def read_networks(name: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    """Networks such as 10.0.0.0/8, or addresses, separated by commas."""
    try:
        return tuple(ipaddress.ip_network(each) for each in read_list(name))
    except ValueError as error:
        raise SettingError(f"{name}: {error}: give networks such as 10.1.0.0/16") from None


def split_list(text: str) -> tuple[str, ...]:
    """The words between commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def read_path(name: str, default: Path) -> Path:
    """A file or folder, made absolute; `~` is the user's home."""
    raw = read_text(name)
    return (Path(raw).expanduser() if raw else default).absolute()
