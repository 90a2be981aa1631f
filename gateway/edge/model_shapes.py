"""/v1/models in the shapes of OpenAI's and Anthropic's clients. Pure."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.edge.catalogue import Model, Place
from gateway.edge.dialects import Dialect

_FIRST_PAGE = 20  # Anthropic's own default and limit
_LONGEST_PAGE = 1000
_UNKNOWN_DATE = "1970-01-01T00:00:00Z"  # what Anthropic's API gives where it has none


def model_body(model: Model, dialect: Dialect) -> dict[str, Any]:
    """One model."""
    return _anthropic(model) if dialect is Dialect.ANTHROPIC else _openai(model)


def list_body(
    models: Sequence[Model], dialect: Dialect, query: Mapping[str, str]
) -> dict[str, Any]:
    """All of them for OpenAI's clients; for Anthropic's a page by limit, after_id, before_id."""
    if dialect is Dialect.OPENAI:
        return {"object": "list", "data": [_openai(model) for model in models]}
    page, has_more = _page(models, query)
    return {
        "data": [_anthropic(model) for model in page],
        "has_more": has_more,
        "first_id": page[0].slug if page else None,
        "last_id": page[-1].slug if page else None,
    }


def _page(models: Sequence[Model], query: Mapping[str, str]) -> tuple[Sequence[Model], bool]:
    """By id alone: an order that a load between two pages cannot change."""
    models = sorted(models, key=lambda model: model.slug)
    limit = _limit(query.get("limit", ""))
    before = query.get("before_id")
    if before:
        models = [model for model in models if model.slug < before]
        return models[-limit:], len(models) > limit
    models = [model for model in models if model.slug > query.get("after_id", "")]
    return models[:limit], len(models) > limit


def _limit(text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) < 10
    return min(max(int(text), 1), _LONGEST_PAGE) if is_number else _FIRST_PAGE


def _openai(model: Model) -> dict[str, Any]:
    info = model.info
    return {
        "id": model.slug,
        "object": "model",
        "created": 0,
        "owned_by": "slotserve",
        "name": info.name,
        "meta": {
            "preset": model.slug,
            "aliases": model.aliases,
            "engine": model.engine,
            "context_length": info.context_length,
            "capabilities": info.capabilities,
            "size_bytes": info.size_bytes,
            "loaded": model.is_loaded,
            "is_fallback": model.is_fallback,
            "load_seconds": _soonest(model),
            "lanes": [_lane(place) for place in model.places],
        },
    }


def _lane(place: Place) -> dict[str, Any]:
    return {
        "slug": place.lane,
        "phase": place.phase,
        "loaded": place.is_loaded,
        "free_at": _whole(place.free_at),
        "booked_at": _whole(place.booked_at),
        "ready_at": _whole(place.ready_at),
        "load_seconds": _whole(place.load_seconds),
    }


def _soonest(model: Model) -> int | None:
    known = [each.load_seconds for each in model.places if each.load_seconds is not None]
    return _whole(min(known, default=model.info.load_seconds))


def _whole(seconds: float | None) -> int | None:
    """Whole seconds: nothing is promised sooner than it comes."""
    return None if seconds is None else math.ceil(seconds)


def _anthropic(model: Model) -> dict[str, Any]:
    return {
        "type": "model",
        "id": model.slug,
        "display_name": model.info.name,
        "created_at": _UNKNOWN_DATE,
        "lifecycle": "active",
        "max_input_tokens": model.info.context_length,
    }
