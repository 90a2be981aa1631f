"""The header of a safetensors file: what its tensors are, and how long it must be. Pure.

Layout: the header's length as eight bytes, the header as JSON (`{"name": {"dtype", "shape",
"data_offsets": [begin, end]}}`), the data.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lanes.catalogue.cursor import U64
from lanes.catalogue.facts import CutShortError, Source, UnreadableError, cut_short
from wire.words import said

MOST_BYTES = 16 * 2**20  # of a header; those of the largest files of today are about 3 MB
MOST_DIMENSIONS = 64
MOST_NUMBER = 2**63 - 1
_PACKED_BITS = {"I32": 32, "U8": 8}  # what several small weights are packed into
_PACKED_NAMES = (".qweight", ".weight_packed", ".weight", "_blocks")
BROKEN = said("Its header is not what safetensors prescribes: download it again.")


@dataclass(frozen=True, slots=True)
class SafetensorsHeader:
    """One file's own tensors."""

    parameters: int
    weights: Counter[str]  # bytes of tensors by the name of their type


def read_safetensors(source: Source, bits: int | None = None) -> SafetensorsHeader:
    """The header, or UnreadableError; `bits`: of a weight, where several are packed into one."""
    prefix = source.read_at(0, U64.size)
    if len(prefix) < U64.size:
        raise CutShortError(said("It is empty so far: it is being copied, or the copy broke off."))
    (length,) = U64.unpack(prefix)
    if length > MOST_BYTES:
        raise UnreadableError(said("It is not a safetensors file, whatever its name says."))
    text = source.read_at(U64.size, length)
    if len(text) < length:
        raise cut_short(source.size, U64.size + length)
    header, end = _tensors(_json(text), bits)
    if U64.size + length + end > source.size:
        raise cut_short(source.size, U64.size + length + end)
    return header


def _json(text: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableError(BROKEN) from None
    if not isinstance(found, Mapping):
        raise UnreadableError(BROKEN)
    return found


def _tensors(header: Mapping[str, Any], bits: int | None) -> tuple[SafetensorsHeader, int]:
    sizes: Counter[str] = Counter()
    parameters = last = 0
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        kind, shape, (begin, end) = _described(tensor)
        sizes[kind] += end - begin
        last = max(last, end)
        weights = 1
        for each in shape:
            weights *= each
        is_packed = bits and kind in _PACKED_BITS and name.endswith(_PACKED_NAMES)
        parameters += weights * _PACKED_BITS[kind] // bits if is_packed and bits else weights
    return SafetensorsHeader(parameters, sizes), last


def _described(tensor: object) -> tuple[str, list[int], tuple[int, int]]:
    try:
        kind, shape, offsets = (tensor[key] for key in ("dtype", "shape", "data_offsets"))  # type: ignore[index]
        begin, end = offsets
    except (KeyError, TypeError, ValueError):
        raise UnreadableError(BROKEN) from None
    if not isinstance(kind, str) or not isinstance(shape, list):
        raise UnreadableError(BROKEN)
    numbers = [begin, end, *shape]
    if any(type(each) is not int or not 0 <= each <= MOST_NUMBER for each in numbers):
        raise UnreadableError(BROKEN)
    if len(shape) > MOST_DIMENSIONS or begin > end:
        raise UnreadableError(BROKEN)
    return kind, shape, (begin, end)
