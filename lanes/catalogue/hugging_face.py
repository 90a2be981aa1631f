"""Facts of a model in Hugging Face's form, from its config.json and tokenizer_config.json. Pure."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lanes.catalogue.facts import Facts, UnreadableError, count_or_none, word
from wire.words import said

MOST_BYTES = 32 * 2**20  # of one JSON file; tokenizer_config.json of many added tokens has a few
_DTYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


def parsed(name: str, text: bytes) -> Mapping[str, Any]:
    """The object in a JSON file; UnreadableError else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableError(
            said("Its {name} is no JSON: it is being copied, or broken.", name=name)
        ) from None
    if not isinstance(found, Mapping):
        raise UnreadableError(
            said("Its {name} is not what it should be: download it again.", name=name)
        )
    return found


def facts_of(config: Mapping[str, Any]) -> Facts:
    """What config.json says. Models of several kinds of input say it of their text part."""
    text = config.get("text_config")
    inner = text if isinstance(text, Mapping) else {}
    names = config.get("architectures")
    first = names[0] if isinstance(names, list) and names else config.get("model_type")
    return Facts(
        architecture=word(first),
        quantisation=_method(config) or _dtype(config) or _dtype(inner),
        context_length=_either(config, inner, "max_position_embeddings"),
        vocabulary_size=_either(config, inner, "vocab_size"),
    )


def packed_bits(config: Mapping[str, Any]) -> int | None:
    """Bits of a weight where several are packed into one number; None: they are not."""
    method = config.get("quantization_config")
    if not isinstance(method, Mapping):
        return None
    bits = count_or_none(method.get("bits"))
    if method.get("load_in_4bit") is True or method.get("quant_method") == "mxfp4":
        bits = 4
    return bits if bits in (1, 2, 3, 4, 5, 6, 8) else None


def with_weights(facts: Facts, parameters: int, weights: Counter[str]) -> Facts:
    """The same with what the weights' own headers say."""
    most = weights.most_common(1)
    return replace(
        facts,
        parameters=count_or_none(parameters),
        quantisation=facts.quantisation or (word(most[0][0]) if most else ""),
    )


def shards_promised(index: Mapping[str, Any]) -> set[str]:
    """The files that model.safetensors.index.json names."""
    named = index.get("weight_map")
    values = named.values() if isinstance(named, Mapping) else ()
    return {each for each in values if isinstance(each, str)}


def _either(config: Mapping[str, Any], inner: Mapping[str, Any], key: str) -> int | None:
    return count_or_none(config.get(key)) or count_or_none(inner.get(key))


def _method(config: Mapping[str, Any]) -> str:
    """Such as "awq 4-bit"."""
    method = config.get("quantization_config")
    if not isinstance(method, Mapping):
        return ""
    name, bits = word(method.get("quant_method")), packed_bits(config)
    return f"{name} {bits}-bit".strip() if bits else name


def _dtype(config: Mapping[str, Any]) -> str:
    named = word(config.get("torch_dtype") or config.get("dtype"))
    return _DTYPES.get(named, named)
