"""How the values of llama-server's flags are read; ValueError says what is wrong with one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xllamacpp

Reader = Callable[[str], object]
RANDOM_SEED = 0xFFFFFFFF


def member(enumeration: Any, prefix: str) -> Reader:
    """The enumeration's member of this name, in small letters without its prefix."""

    def convert(text: str) -> object:
        try:
            return enumeration[prefix + text.upper().replace("-", "_")]
        except KeyError:
            raise ValueError(f"unknown value: {text}") from None

    return convert


def one_of(**values: object) -> Reader:
    def convert(text: str) -> object:
        if text not in values:
            raise ValueError(f"unknown value: {text} (one of {', '.join(values)})")
        return values[text]

    return convert


def layers(text: str) -> int:
    return {"auto": -1, "all": -2}[text] if text in {"auto", "all"} else int(text)


def seed(text: str) -> int:
    return int(text) % (RANDOM_SEED + 1)


def shares(text: str) -> list[float]:
    parts = [float(part) for part in text.replace("/", ",").split(",")]
    room = len(xllamacpp.CommonParams().tensor_split)
    if len(parts) > room:
        raise ValueError(f"at most {room} devices")
    return parts + [0.0] * (room - len(parts))


def margins(text: str) -> list[int]:
    room = len(xllamacpp.CommonParams().fit_params_target)
    sizes = [int(part) * 2**20 for part in text.split(",")]
    return sizes * room if len(sizes) == 1 else sizes + [2**30] * (room - len(sizes))


def file_text(text: str) -> str:
    return Path(text).read_text()


def template_values(text: str) -> dict[str, str]:
    return {name: json.dumps(value) for name, value in json.loads(text).items()}


def grammar(text: str) -> object:
    kind = xllamacpp.common_grammar_type.COMMON_GRAMMAR_TYPE_USER
    return xllamacpp.CommonGrammar(kind, text)


def schema(text: str) -> object:
    kind = xllamacpp.common_grammar_type.COMMON_GRAMMAR_TYPE_OUTPUT_FORMAT
    return xllamacpp.CommonGrammar(kind, xllamacpp.json_schema_to_grammar(text))


def rope_scale(text: str) -> float:
    return 1.0 / float(text)
