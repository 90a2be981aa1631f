"""What a llama-server can do: by its own `/props`, else by its arguments. Pure.

`/props` of b11434 and of the built-in runner: `total_slots`, `default_generation_settings.n_ctx`
(tokens for one slot), `modalities`, `chat_template_caps`.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from lanes.engines.base import ServerFacts

_SLOTS = frozenset({"-np", "--parallel"})
_CONTEXT = frozenset({"-c", "--ctx-size"})
_SHARED_CONTEXT = frozenset({"-kvu", "--kv-unified"})  # each slot may use all of it
_EMBEDDING = frozenset({"--embedding", "--embeddings"})
_RERANK = frozenset({"--rerank", "--reranking"})
_MOST = 2**31 - 1  # what the database's columns hold


def facts(arguments: Sequence[str], answer: bytes | None) -> ServerFacts:
    """The answer's facts; where it says nothing, or there is none, those of the arguments."""
    props = _props(answer)
    settings = props.get("default_generation_settings")
    context = settings.get("n_ctx") if isinstance(settings, Mapping) else None
    return ServerFacts(
        slots=_count(props.get("total_slots")) or _number_after(arguments, _SLOTS),
        context_length=_count(context) or _context_of(arguments),
        capabilities=_capabilities(arguments, props),
    )


def _props(answer: bytes | None) -> Mapping[str, Any]:
    try:
        props = json.loads(answer or b"{}")
    except (ValueError, RecursionError):
        return {}
    return props if isinstance(props, Mapping) else {}


def _capabilities(arguments: Sequence[str], props: Mapping[str, Any]) -> tuple[str, ...]:
    """What it answers. A server for embeddings or reranking does nothing else."""
    given = {_long(word) for word in arguments}
    if given & _RERANK:
        return ("rerank",)
    if given & _EMBEDDING:
        return ("embedding",)
    modalities = _true_of(props.get("modalities")) & {"vision", "audio", "video"}
    tools = {"tools"} if "supports_tools" in _true_of(props.get("chat_template_caps")) else set()
    return ("completion", *sorted(modalities | tools))


def _context_of(arguments: Sequence[str]) -> int | None:
    """Tokens for one request: slots whose number is given share the context, unless unified."""
    whole, slots = _number_after(arguments, _CONTEXT), _number_after(arguments, _SLOTS)
    if whole is None or slots is None or _SHARED_CONTEXT & {_long(word) for word in arguments}:
        return whole
    return whole // slots or None


def _number_after(arguments: Sequence[str], names: frozenset[str]) -> int | None:
    """The value of the last such flag (llama-server's parser takes the last, too)."""
    found = None
    for word, value in pairwise((*arguments, "")):
        name, _, joined = word.partition("=")
        text = joined or value
        if _long(name) in names and text.isascii() and text.isdigit():
            found = _count(int(text))
    return found


def _long(name: str) -> str:
    return name.replace("_", "-") if name.startswith("--") else name


def _true_of(flags: object) -> set[str]:
    if not isinstance(flags, Mapping):
        return set()
    return {str(name) for name, is_so in flags.items() if is_so is True}


def _count(value: object) -> int | None:
    """A whole number from one up; anything else is no answer."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 < value <= _MOST else None
