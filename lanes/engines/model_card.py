"""What `/v1/models` of vLLM and SGLang says of the model. Pure."""

import json
from collections.abc import Mapping

_MOST = 2**31 - 1  # what the database's columns hold


def max_model_len(answer: bytes | None) -> int | None:
    """Tokens for one request, as the first model's `max_model_len`; None when it is not said."""
    try:
        told = json.loads(answer or b"{}")
    except (ValueError, RecursionError):
        return None
    cards = told.get("data") if isinstance(told, Mapping) else None
    first = cards[0] if isinstance(cards, list) and cards else None
    length = first.get("max_model_len") if isinstance(first, Mapping) else None
    if isinstance(length, bool) or not isinstance(length, int):
        return None
    return length if 0 < length <= _MOST else None
