"""What an answer says of its tokens: found in its bytes, never by reading all of it as JSON.

Shapes: OpenAI's `usage` of chat, completions, embeddings, rerank and responses; Anthropic's, whose
stream has the prompt in `message_start` and the rest in `message_delta`; llama.cpp's `timings`.

A model cannot make them up: a quote inside a JSON string is escaped, so `"usage":` with both its
quotes stands only where a server has put it. Where several stand, the last one counts.
"""

from collections.abc import Mapping
from typing import NamedTuple

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


class TokenCounts(NamedTuple):
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
    told = _of_usage(usage)
    if not timings:
        return told
    timed = _of_timings(timings)
    return TokenCounts(
        prompt=timed.prompt if told.prompt is None else told.prompt,
        completion=timed.completion if told.completion is None else told.completion,
        cached=timed.cached if told.cached is None else told.cached,
    )


def _of_usage(usage: Found) -> TokenCounts:
    if not usage:
        return UNKNOWN
    cached = _count(usage.get("cache_read_input_tokens"))
    if cached is None:
        cached = _cached_detail(usage)
        prompt = _either(usage, "prompt_tokens", "input_tokens")
    else:  # Anthropic: input_tokens are those that no cache had
        prompt = _sum(_count(usage.get("input_tokens")), cached)
        prompt = _sum(prompt, _count(usage.get("cache_creation_input_tokens")) or 0)
    completion = _either(usage, "completion_tokens", "output_tokens")
    if prompt is None or completion is None:
        prompt, completion = _fill(prompt, completion, _count(usage.get("total_tokens")))
    return TokenCounts(prompt, completion, cached)


def _fill(
    prompt: int | None, completion: int | None, total: int | None
) -> tuple[int | None, int | None]:
    """What is not told of both, by their sum."""
    if total is None:
        return prompt, completion
    if prompt is None:  # rerankers may tell the total alone
        prompt = max(0, total - (completion or 0))
    return prompt, max(0, total - prompt) if completion is None else completion


def _of_timings(timings: Found) -> TokenCounts:
    cached = _count(timings.get("cache_n"))
    prompt = _sum(_count(timings.get("prompt_n")), cached or 0)
    return TokenCounts(prompt, _count(timings.get("predicted_n")), cached)


def _cached_detail(usage: Found) -> int | None:
    for name in ("prompt_tokens_details", "input_tokens_details"):
        details = usage.get(name)
        if isinstance(details, dict):
            return _count(details.get("cached_tokens"))
    return None


def _either(found: Found, name: str, other: str) -> int | None:
    count = _count(found.get(name))
    return _count(found.get(other)) if count is None else count


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= _MOST else None  # a flag is no count


def _sum(some: int | None, more: int) -> int | None:
    return None if some is None else some + more


def _tells(found: Found) -> bool:
    """Whether it has a count."""
    usual = found.get("prompt_tokens", found.get("output_tokens", found.get("predicted_n")))
    return _count(usual) is not None or read_counts(found, found) != UNKNOWN


def _last(text: bytes, key: bytes) -> Found:
    at = text.rfind(key)
    for _ in range(_TRIES):
        if at < 0:
            break
        found = _object(text, at + len(key))
        if found and _tells(found):
            return found
        at = text.rfind(key, 0, at)
    return NOTHING


def _object(text: bytes, at: int) -> Found:
    """The object behind a key that ends here; nothing when there is none, or not all of it."""
    if text.startswith(b":{", at):  # as most servers write it
        value = text[at + 1 : at + OBJECT_BYTES]
    else:
        value = text[at : at + OBJECT_BYTES].lstrip(_SPACE)
        value = value[1:].lstrip(_SPACE) if value.startswith(b":") else b""
        if not value.startswith(b"{"):
            return NOTHING
    found = _parse(value[: _likely_end(value)])
    end = 0
    for _ in range(_DEPTH):
        if found is not None or not (end := value.find(b"}", end) + 1):
            break
        found = _parse(value[:end])
    return NOTHING if found is None else found


def _likely_end(value: bytes) -> int:
    """Where as many braces are closed as opened; wrong when the object's texts have some."""
    end = value.find(b"}") + 1
    closed = 1
    while closed < value.count(b"{", 0, end) and closed < _DEPTH:
        end = value.find(b"}", end) + 1
        closed += 1
    return end


def _parse(text: bytes) -> Found | None:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


UNKNOWN = TokenCounts()
