"""The header of a GGUF file: its facts, and how long the file must be. Pure.

Layout: "GGUF", version, number of tensors, number of keys; each key with a typed value; each tensor
with name, dimensions, type and offset; then the tensors' data, aligned. All numbers little-endian.
"""

import struct
from collections import Counter
from dataclasses import dataclass, field, replace

from lanes.catalogue.cursor import U32, U64, Cursor
from lanes.catalogue.facts import (
    CutShortError,
    Facts,
    Source,
    UnreadableError,
    count_or_none,
    cut_short,
    word,
)
from lanes.catalogue.ggml_types import FILE_TYPES, TENSOR_TYPES, bytes_of
from wire.words import Words, said

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_KEYS = MOST_TENSORS = 2**16
MOST_ITEMS = 2**22  # texts to walk through, in all lists together
MOST_DIMENSIONS = 4
DEFAULT_ALIGNMENT = 32
TEXT, LIST = 8, 9
_NUMBERS = {
    kind: struct.Struct("<" + form)
    for kind, form in zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True)
}


@dataclass(frozen=True, slots=True)
class Listed:
    """A list, of which only the length matters."""

    count: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """One file: of a split model its own tensors, and what its own keys say."""

    facts: Facts
    bytes_needed: int
    parts: int  # 1 when the model is not split
    weights: Counter[str]  # bytes of tensors by the name of their type


@dataclass(slots=True)
class _Keys:
    """What the keys say, and how many list items were walked through for that."""

    values: dict[str, object] = field(default_factory=dict)
    items: int = 0


def read_gguf(source: Source) -> GgufHeader:
    """The header; UnreadableError with the reason, CutShortError when the file ends too early."""
    cursor = Cursor(source)
    tensors, count = _opening(source, cursor)
    keys = _Keys()
    for _ in range(count):
        name = cursor.text()
        keys.values[name] = _value(cursor, cursor.whole(U32), keys)
    weights, parameters, end = _tensors(cursor, tensors)
    alignment = count_or_none(keys.values.get("general.alignment")) or DEFAULT_ALIGNMENT
    begin = -(-cursor.offset // alignment) * alignment
    needed = begin + end if tensors else cursor.offset
    if needed > source.size:
        raise cut_short(source.size, needed)
    facts = replace(_facts(keys.values, weights), parameters=count_or_none(parameters))
    parts = count_or_none(keys.values.get("split.count")) or 1
    return GgufHeader(facts, needed, parts, weights)


def _opening(source: Source, cursor: Cursor) -> tuple[int, int]:
    """How many tensors and keys there are."""
    magic = source.read_at(0, len(MAGIC))
    if not MAGIC.startswith(magic):
        raise UnreadableError(_what_else(magic))
    if len(magic) < len(MAGIC):
        raise CutShortError(said("It is empty so far: it is being copied, or the copy broke off."))
    cursor.skip(len(MAGIC))
    version = cursor.whole(U32)
    if version not in VERSIONS:
        raise UnreadableError(_unknown(version))
    tensors, keys = cursor.whole(U64), cursor.whole(U64)
    if tensors > MOST_TENSORS or keys > MOST_KEYS:
        raise UnreadableError(said("Its header names more tensors or keys than any model has."))
    return tensors, keys


def _what_else(magic: bytes) -> Words:
    if not any(magic):
        return said(
            "It begins with zeros: a download has made room for it and not begun, or broke off."
        )
    return said("It is not a GGUF file, whatever its name says: download it again or remove it.")


def _unknown(version: int) -> Words:
    if version and version & 0xFFFF == 0:
        return said("It was made for big-endian machines: llama.cpp does not load it here.")
    return said(
        "It is GGUF version {version}, which llama.cpp does not read: download a newer one.",
        version=version,
    )


def _value(cursor: Cursor, kind: int, keys: _Keys) -> object:
    if kind in _NUMBERS:
        return cursor.number(_NUMBERS[kind])
    if kind == TEXT:
        return cursor.text()
    if kind == LIST:
        return _list(cursor, keys)
    raise UnreadableError(
        said("Its header has a value of type {kind}, which GGUF does not know.", kind=kind)
    )


def _list(cursor: Cursor, keys: _Keys) -> Listed:
    kind, count = cursor.whole(U32), cursor.whole(U64)
    if kind in _NUMBERS:
        cursor.skip(count * _NUMBERS[kind].size)
        return Listed(count)
    if kind != TEXT:
        raise UnreadableError(
            said("Its header has a list of type {kind}, unknown to llama.cpp.", kind=kind)
        )
    keys.items += count
    if keys.items > MOST_ITEMS:
        raise UnreadableError(
            said("Its header has longer lists than any vocabulary: it is broken.")
        )
    cursor.skip_texts(count)
    return Listed(count)


def _tensors(cursor: Cursor, count: int) -> tuple[Counter[str], int, int]:
    """Bytes by type, weights in all, and where the last tensor ends after the data's begin."""
    sizes: Counter[str] = Counter()
    parameters = end = 0
    for _ in range(count):
        cursor.skip(cursor.whole(U64))  # its name
        weights = _weights(cursor)
        kind, offset = cursor.whole(U32), cursor.whole(U64)
        size = bytes_of(kind, weights)
        sizes[TENSOR_TYPES.get(kind, (f"type {kind}", 1, 0))[0]] += size
        parameters += weights
        end = max(end, offset + size)
    return sizes, parameters, end


def _weights(cursor: Cursor) -> int:
    dimensions = cursor.whole(U32)
    if dimensions > MOST_DIMENSIONS:
        raise UnreadableError(
            said("It has a tensor of {count} dimensions: it is broken.", count=dimensions)
        )
    weights = 1
    for _ in range(dimensions):
        weights *= cursor.whole(U64)
    return weights


def _facts(values: dict[str, object], weights: Counter[str]) -> Facts:
    architecture = values.get("general.architecture")
    tokens = values.get("tokenizer.ggml.tokens")
    listed = tokens.count if isinstance(tokens, Listed) else None
    template = values.get("tokenizer.chat_template")
    return Facts(
        architecture=word(architecture),
        quantisation=_quantisation(values, weights),
        context_length=count_or_none(values.get(f"{architecture}.context_length")),
        vocabulary_size=count_or_none(listed)
        or count_or_none(values.get(f"{architecture}.vocab_size")),
        has_chat_template=isinstance(template, str) and bool(template.strip()),
    )


def _quantisation(values: dict[str, object], weights: Counter[str]) -> str:
    """As the file calls itself, else the type that most of its bytes have."""
    named = values.get("general.file_type")
    name = FILE_TYPES.get(named) if isinstance(named, int) else None
    most = weights.most_common(1)
    return name or (most[0][0] if most else "")
