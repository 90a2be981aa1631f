"""What an answer says of its tokens: found in its bytes, never by reading all of it as JSON.

Shapes: OpenAI's `usage` of chat, completions, embeddings, rerank and responses; Anthropic's, whose
stream has the prompt in `message_start` and the rest in `message_delta`; llama.cpp's `timings`.

A model cannot make them up: a quote inside a JSON string is escaped, so `"usage":` with both its
quotes stands only where a server has put it. Where several stand, the last one counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

OBJECT_BYTES = 2048  # a longer object is no `usage`
_USAGE = b'"usage"'
_TIMINGS = b'"timings"'
_START = b'"message_start"'
_TRIES = 32  # of objects by that name that are something else, such as a tool's schema
_DEPTH = 8  # closing braces that may come before the object's own
_MOST = 2**31 - 1
_SPACE = b" \t\r\n"
Found = Mapping[str, object]
NOTHING: Found = {}


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens of one request; None where nobody has said."""

    prompt: int | None = None  # those that came from the cache included
    completion: int | None = None
    cached: int | None = None  # of the prompt's
    is_estimated: bool = False  # the completion's were counted by the stream's events

    @property
    def total(self) -> int:
        """What is known of them, together."""
        return (self.prompt or 0) + (self.completion or 0)


def last_usage(text: bytes) -> Found:
    """The last `usage` object with counts."""
    return _last(text, _USAGE)


def last_timings(text: bytes) -> Found:
    """llama.cpp's last `timings` object."""
    return _last(text, _TIMINGS)


def split_start(text: bytes) -> tuple[Found, bytes]:
    """The `usage` of an Anthropic stream's first event, and the text behind it.

    Its `output_tokens` are left out: they are those of a stream that has not begun.
    """
    start = text.find(_START)
    at = text.find(_USAGE, start) if start >= 0 else -1
    if at < 0:
        return NOTHING, text
    behind = at + len(_USAGE)
    found = _object(text, behind)
    return {name: value for name, value in found.items() if name != "output_tokens"}, text[behind:]


def read_counts(usage: Found, timings: Found = NOTHING) -> TokenCounts:
    """The counts of these objects. `usage` goes before: timings are those of one choice of many."""
    told, timed = _of_usage(usage), _of_timings(timings)
    return TokenCounts(
        prompt=timed.prompt if told.prompt is None else told.prompt,
        completion=timed.completion if told.completion is None else told.completion,
        cached=timed.cached if told.cached is None else told.cached,
    )


def _of_usage(usage: Found) -> TokenCounts:
    cached = _first(usage, "cache_read_input_tokens")
    if cached is None:
        cached = _cached_detail(usage)
        prompt = _first(usage, "prompt_tokens", "input_tokens")
    else:  # Anthropic: input_tokens are those that no cache had
        prompt = _sum(_first(usage, "input_tokens"), cached)
        prompt = _sum(prompt, _first(usage, "cache_creation_input_tokens") or 0)
    completion = _first(usage, "completion_tokens", "output_tokens")
    total = _first(usage, "total_tokens")
    if total is not None and prompt is None:  # rerankers may tell the total alone
        prompt = max(0, total - (completion or 0))
    if total is not None and completion is None and prompt is not None:
        completion = max(0, total - prompt)
    return TokenCounts(prompt, completion, cached)


def _of_timings(timings: Found) -> TokenCounts:
    cached = _first(timings, "cache_n")
    prompt = _sum(_first(timings, "prompt_n"), cached or 0)
    return TokenCounts(prompt, _first(timings, "predicted_n"), cached)


def _cached_detail(usage: Found) -> int | None:
    for name in ("prompt_tokens_details", "input_tokens_details"):
        details = usage.get(name)
        if isinstance(details, dict):
            return _first(details, "cached_tokens")
    return None


def _first(found: Found, *names: str) -> int | None:
    for name in names:
        value = found.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST:
            return value
    return None


def _sum(some: int | None, more: int) -> int | None:
    return None if some is None else some + more


def _last(text: bytes, key: bytes) -> Found:
    at = text.rfind(key)
    for _ in range(_TRIES):
        if at < 0:
            break
        found = _object(text, at + len(key))
        if read_counts(found, found) != _UNKNOWN:
            return found
        at = text.rfind(key, 0, at)
    return NOTHING


def _object(text: bytes, at: int) -> Found:
    """The object behind a key that ends here; nothing when there is none, or not all of it."""
    value = text[at : at + OBJECT_BYTES].lstrip(_SPACE)
    value = value[1:].lstrip(_SPACE) if value.startswith(b":") else b""
    if not value.startswith(b"{"):
        return NOTHING
    end = 0
    for _ in range(_DEPTH):
        end = value.find(b"}", end) + 1
        if not end:
            break
        try:
            found = orjson.loads(value[:end])
        except orjson.JSONDecodeError:
            continue
        return found if isinstance(found, dict) else NOTHING
    return NOTHING


_UNKNOWN = TokenCounts()
