"""What edges say of the requests they have answered or refused: one JSON record each.

An edge appends to the stream USAGE_STREAM while fewer than STREAM_LENGTH records are in it, and
keeps the rest in a file until the worker has moved records to the database. Nobody trims the
stream, so that nothing vanishes uncounted. Never a prompt, an answer or a token's text.

An entry holds the records of a moment, a line each, in the field FIELD_OF_MANY; entries of earlier
edges one, in FIELD. USAGE_WAITING counts the records in the stream: edges raise it, the worker
lowers it. It may be wrong when somebody else has taken entries off, until the stream is empty; and
there are never fewer records than entries. So whoever reads it takes the larger of the two.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import orjson

STREAM_LENGTH = 100_000  # records that may wait in the stream while the worker is down
USAGE_WAITING = "ss:usage:waiting"
FIELD = "record"  # of a stream entry
FIELD_OF_MANY = "records"
_LONGEST_ID = 36
_LONGEST = {"lane": 63, "preset": 63, "route": 100, "code": 40}
_MOST = 2**31 - 1
_MOST_BYTES = 2**62
_MOST_SECONDS = 2**33  # the year 2242


@dataclass
class Usage:
    """One request. `at` is its arrival, seconds since 1970 by the database's clock.

    Neither frozen nor with slots: one is made and encoded for each request, and that takes a third
    of the time so.
    """

    request_id: str
    at: float
    route: str
    status: int
    duration_ms: float
    owner_id: int | None = None
    token_id: int | None = None
    lane: str = ""  # slug; of one that was refused the lane that refused it, if one did
    booking_id: int | None = None
    preset: str = ""  # slug of what answered
    code: str = ""  # the refusal's, if it was refused
    queue_ms: float = 0.0  # of the duration: waiting for a load, a switch or a free slot
    first_byte_ms: float | None = None
    bytes_in: int = 0
    bytes_out: int = 0
    is_aborted: bool = False
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None  # of the prompt's: read from the server's cache
    is_estimated: bool = False  # completion_tokens: events of a stream that told no count


_NAMES = frozenset(field.name for field in fields(Usage))


def encode_usage(usage: Usage) -> dict[str, bytes]:
    """The fields of a stream entry that has it alone."""
    return {FIELD: encode_line(usage)}


def encode_line(usage: Usage) -> bytes:
    """The record alone, as JSON without a line's end."""
    return orjson.dumps(usage)


def pack_lines(lines: Sequence[bytes]) -> bytes:
    """Records as FIELD_OF_MANY holds them."""
    return b"\n".join(lines)


def decode_entry(entry: Mapping[bytes, bytes]) -> list[Usage | None]:
    """The records of a stream entry, None for each that is not one."""
    packed = entry.get(FIELD_OF_MANY.encode())
    lines = [entry.get(FIELD.encode(), b"")] if packed is None else packed.split(b"\n")
    return [decode_line(line) for line in lines]


def decode_usage(entry: dict[bytes, bytes]) -> Usage | None:
    """The record of an entry that has one alone, or None."""
    return decode_line(entry.get(FIELD.encode(), b""))


def decode_line(line: bytes) -> Usage | None:
    """The record, or None when it is not one. Texts are cut to their length.

    What a newer edge tells besides is left out.
    """
    try:
        raw = json.loads(line)
        return _checked(Usage(**{name: raw[name] for name in raw if name in _NAMES}))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _checked(usage: Usage) -> Usage:
    values: dict[str, Any] = dict(vars(usage))
    for name, longest in _LONGEST.items():
        values[name] = _text(values[name])[:longest]
    values["request_id"] = _text(values["request_id"])
    for name in ("at", "duration_ms", "queue_ms", "first_byte_ms"):
        values[name] = _number(values[name], is_optional=name == "first_byte_ms")
    for name in ("owner_id", "token_id", "booking_id"):
        values[name] = _whole(values[name], _MOST_BYTES, is_optional=True)
    for name in ("bytes_in", "bytes_out"):
        values[name] = _whole(values[name], _MOST_BYTES)
    for name in ("prompt_tokens", "completion_tokens", "cached_tokens"):
        values[name] = _whole(values[name], _MOST, is_optional=True)
    values["status"] = _whole(values["status"], 999)
    if not 0 < len(values["request_id"]) <= _LONGEST_ID:
        raise ValueError(f"a request id has 1 to {_LONGEST_ID} characters")
    if not all(isinstance(values[name], bool) for name in ("is_aborted", "is_estimated")):
        raise ValueError("is_aborted or is_estimated is not a flag")
    return Usage(**values)


def _text(value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"{value!r} is not a text")
    return value.encode("utf-8", "replace").decode()


def _number(value: object, *, is_optional: bool = False) -> float | None:
    if value is None and is_optional:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number")
    if not math.isfinite(value) or not 0 <= value <= _MOST_SECONDS:
        raise ValueError(f"{value!r} is out of range")
    return float(value)


def _whole(value: object, most: int, *, is_optional: bool = False) -> int | None:
    if value is None and is_optional:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"{value!r} is not a whole number up to {most}")
    return value
