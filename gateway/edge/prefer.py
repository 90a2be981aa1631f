"""How long a request is willing to wait: `Prefer: wait=N` (RFC 7240), else the settings. Pure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gateway.edge.config import EdgeConfig

_LONGEST_HEADER = 256  # bytes; what is longer is no preference that we know
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 (RFC 9110's word for a word)
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_PREFERENCE = re.compile(rf'\s*({_TOKEN})\s*(?:=\s*({_TOKEN}|{_QUOTED})?)?((?:[^,"]|{_QUOTED})*)$')
_PARTS = re.compile(rf'(?:[^,"]|{_QUOTED})+')
_DIGITS = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds from the first refusal for which a request waits for what is in the way."""

    for_slot: float  # a free slot of the model server
    for_load: float  # a load or a switch; 0: refused at once
    applied: int | None = None  # what `Preference-Applied: wait=N` tells; None: nothing was asked


def default_patience(config: EdgeConfig) -> Patience:
    """Of a request that does not say."""
    for_load = min(config.wait_seconds, config.wait_most_seconds)
    return Patience(max(config.queue_seconds, for_load), for_load)


def patience_of(
    headers: Iterable[tuple[bytes, bytes]], otherwise: Patience, most: float
) -> Patience:
    """What this request asks for, `most` seconds at most, for a slot and a load alike."""
    values = [value for name, value in headers if name == b"prefer"]
    seconds = preferred_wait(values) if values else None
    if seconds is None:
        return otherwise
    seconds = min(seconds, int(most))
    return Patience(seconds, seconds, seconds)


def preferred_wait(values: Iterable[bytes]) -> int | None:
    """The wait of these Prefer headers, in whole seconds; None when none is told, or a bad one.

    Of several the first counts (RFC 7240, 2).
    """
    for value in values:
        if len(value) <= _LONGEST_HEADER:
            for name, said in _preferences(value.decode("latin-1")):
                if name.lower() == "wait":
                    return _seconds(said)
    return None


def _preferences(value: str) -> Iterator[tuple[str, str]]:
    """Names and values, without their parameters; what is no preference is passed over."""
    for part in _PARTS.findall(value):
        found = _PREFERENCE.match(part)
        if found and found[3].lstrip()[:1] in ("", ";"):
            yield found[1], found[2] or ""


def _seconds(said: str) -> int | None:
    bare = said[1:-1] if said.startswith('"') else said
    return int(bare) if _DIGITS.fullmatch(bare) else None
