"""Reads the headers of a model's files: its facts, or a sentence about what is wrong with it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lanes.catalogue import hugging_face
from lanes.catalogue.facts import Facts, UnreachableError, UnreadableError, word
from lanes.catalogue.gguf import GgufHeader, read_gguf
from lanes.catalogue.grouping import (
    CONFIG,
    HUGGING_FACE,
    INDEX,
    LONGEST_NAME,
    OTHER,
    TEMPLATES,
    TOKENIZER,
    FileSeen,
    Found,
)
from lanes.catalogue.opening import opened
from lanes.catalogue.safetensors import read_safetensors
from lanes.models.catalogue import A_PROJECTOR
from wire.words import Words, kept_of, said

PROJECTOR = "clip"  # the architecture of a projector's file
SETTLING_NS = 30 * 10**9
MISSING_SHOWN = 3
LONGEST_TROUBLE = 500  # characters


@dataclass(frozen=True, slots=True)
class Inspected:
    """What was read of one model; `trouble` is empty when it can be loaded as far as is known."""

    facts: Facts = field(default_factory=Facts)
    trouble: str = ""
    is_settled: bool = True  # else it is to be read again at the next scan


def trouble_columns(trouble: str) -> dict[str, object]:
    """As a model keeps it; empty when there is none."""
    return {"trouble": trouble[:LONGEST_TROUBLE], "words": kept_of(trouble)}


def inspect(found: Found, now_ns: int) -> Inspected:
    """Read the headers of all its files. `now_ns` is this machine's wall clock."""
    if found.kind == OTHER:
        return Inspected()
    try:
        facts = _of_folder(found) if found.kind == HUGGING_FACE else _of_ggufs(found)
    except UnreadableError as error:
        is_settled = not (_is_fresh(found, now_ns) or isinstance(error, UnreachableError))
        return Inspected(trouble=error.words, is_settled=is_settled)
    if _is_fresh(found, now_ns):
        words = said("It was written to a moment ago and may still be being copied.")
        return Inspected(facts, words, is_settled=False)
    return Inspected(facts)


def _is_fresh(found: Found, now_ns: int) -> bool:
    return abs(now_ns - found.modified_ns) < SETTLING_NS


def _of_ggufs(found: Found) -> Facts:
    if len(found.files) < found.parts:
        raise UnreadableError(
            said(
                "{there} of its {parts} parts are there: copy the others beside them.",
                there=len(found.files),
                parts=found.parts,
            )
        )
    headers = [_header(each, is_part=found.parts > 1) for each in found.files]
    if headers[0].parts > 1 and found.parts == 1:
        raise UnreadableError(
            said(
                "It is one of {parts} parts, and its name does not say so: name them "
                "…-00001-of-00005.gguf and so on, as llama.cpp expects.",
                parts=headers[0].parts,
            )
        )
    first = headers[0].facts
    if first.architecture == PROJECTOR:
        raise UnreadableError(said(A_PROJECTOR))
    if not first.architecture:
        raise UnreadableError(said("Its header names no architecture: llama.cpp cannot load it."))
    weights: Counter[str] = sum((each.weights for each in headers), Counter())
    parameters = sum(each.facts.parameters or 0 for each in headers)
    most = weights.most_common(1)
    return replace(
        first,
        parameters=parameters or None,
        quantisation=first.quantisation or (most[0][0] if most else ""),
    )


def _header(file: FileSeen, *, is_part: bool) -> GgufHeader:
    try:
        with opened(file.path) as source:
            return read_gguf(source)
    except UnreadableError as error:
        if not is_part:
            raise
        name = word(file.name, LONGEST_NAME)
        raise type(error)(said("{file}: {why}", file=name, why=error.words)) from error


def _of_folder(found: Found) -> Facts:
    config = _json(found, CONFIG)
    index = _json(found, INDEX)
    present = {each.name for each in found.files}
    missing = sorted(hugging_face.shards_promised(index) - present)
    if missing:
        raise UnreadableError(_not_there(missing))
    parameters, weights = 0, Counter[str]()
    for each in found.files:
        with opened(each.path) as source:
            header = read_safetensors(source, hugging_face.packed_bits(config))
        parameters += header.parameters
        weights += header.weights
    facts = hugging_face.with_weights(hugging_face.facts_of(config), parameters, weights)
    return replace(facts, has_chat_template=_has_template(found))


def _not_there(missing: list[str]) -> Words:
    shown = ", ".join(word(name, LONGEST_NAME) for name in missing[:MISSING_SHOWN])
    if len(missing) <= MISSING_SHOWN:
        return said("{names} of its weights are not there: copy the rest.", names=shown)
    return said(
        "{names} and {count} more of its weights are not there: copy the rest.",
        names=shown,
        count=len(missing) - MISSING_SHOWN,
    )


def _has_template(found: Found) -> bool:
    if any(each.name in TEMPLATES and each.size for each in found.beside):
        return True
    return bool(_json(found, TOKENIZER).get("chat_template"))


def _json(found: Found, name: str) -> Mapping[str, Any]:
    """A JSON file of the folder; empty when there is none."""
    path = next((each.path for each in found.beside if each.name == name), None)
    if path is None:
        return {}
    with opened(path) as source:
        if source.size > hugging_face.MOST_BYTES:
            raise UnreadableError(
                said("Its {name} is far too large: download it again.", name=name)
            )
        return hugging_face.parsed(name, source.read_at(0, source.size))
