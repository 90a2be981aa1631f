"""What a preset may say besides arguments and variables, where its engine cannot know. Pure."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lanes.engines.well_formed import check_arguments
from lanes.refusals import Refusal
from wire.words import said

MOST_SLOTS = 10_000
_PATH = re.compile(r"/[!-\"$-~]{0,254}")  # visible characters but "#"; no spaces


@dataclass(frozen=True, slots=True)
class Options:
    """Of a training service and any command: the defaults of other engines are their own."""

    health_path: str = ""  # answers 200 without a key when it is ready; empty: /health
    protected_path: str = ""  # answers 200 with the key and 401 without; empty: it has no keys
    stop_command: tuple[str, ...] = ()  # in place of the first TERM; empty: TERM
    slots: int | None = None  # requests it works on at once; None: as many as it is sent


def check_options(value: object) -> Options | Refusal:
    """The options as a preset says them, or what is wrong with them."""
    if not isinstance(value, Mapping):
        return _refuse(said('Options are names and values, such as {{"health_path": "/health"}}.'))
    unknown = sorted(str(name) for name in value if name not in Options.__dataclass_fields__)
    if unknown:
        known = ", ".join(Options.__dataclass_fields__)
        return _refuse(
            said("{unknown} is no option: {known} are known.", unknown=unknown[0], known=known)
        )
    for name in ("health_path", "protected_path"):
        path = value.get(name) or ""
        if not isinstance(path, str) or (path and not _PATH.fullmatch(path)):
            return _refuse(
                said("{name} is a path that begins with / and has no spaces.", name=name)
            )
    stop = check_arguments(value.get("stop_command") or [])
    if isinstance(stop, Refusal):
        return _refuse(said("stop_command: {stop}", stop=stop.sentence))
    slots = value.get("slots")
    if slots is not None and not _is_count(slots):
        return _refuse(
            said(
                "slots is a whole number from 1 to {most_slots}, or nothing.", most_slots=MOST_SLOTS
            )
        )
    return Options(
        health_path=str(value.get("health_path") or ""),
        protected_path=str(value.get("protected_path") or ""),
        stop_command=tuple(stop),
        slots=int(str(slots)) if slots is not None else None,
    )


def as_said(options: Options) -> dict[str, Any]:
    """Options as JSON has them; what is not said is left out."""
    told = {**asdict(options), "stop_command": list(options.stop_command)}
    return {name: value for name, value in told.items() if value}


def _is_count(value: object) -> bool:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return is_whole and 1 <= int(str(value)) <= MOST_SLOTS


def _refuse(words: str) -> Refusal:
    return Refusal("bad_options", words)
