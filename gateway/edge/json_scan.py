"""Finds the last top-level member "model" of a large JSON body while it arrives.

No object is built, and nothing but that member's text is kept. What is regular is skipped in C;
the rest costs a few microseconds a token, and the loop gets its turn every few milliseconds. Of
the body's syntax only what decides where the top level is is checked: the model server judges
the rest.
"""

import asyncio
from collections.abc import Callable
from time import perf_counter

import orjson

from gateway.edge.json_patterns import (
    MEMBER,
    NEXT_BRACKET,
    OTHERS,
    OUTSIDE,
    SCALAR,
    blank,
    end_of_string,
    may_close,
    skip,
)
from gateway.edge.refusals import EdgeRefusal, refuse

TURN_SECONDS = 0.002  # of scanning before other streams get a turn
MOST_NAME_BYTES = 4096  # of a model's name as written
_MOST_KEY_BYTES = 40  # "model", each letter as an escape, has 30
_SMALL_WINDOW, _LARGE_WINDOW = 64, 4096  # of what is nested, looked at in one step
_SMALL_STEP, _LARGE_STEP = 1024, 32_768  # of whole members; a long text is not one of them

_NOT_JSON = refuse("invalid_request_error", "the request's body is not JSON.")
_NO_OBJECT = refuse("invalid_request_error", "the request's body is not a JSON object.")
NOT_TEXT = refuse("invalid_request_error", "'model' is not a string.")
_TOO_LONG = refuse("invalid_request_error", "'model' is too long.")

_State = Callable[[bytes, int], int]


class _NotJsonError(Exception):
    """The top level is not what JSON would have there."""

    def __init__(self, refusal: EdgeRefusal = _NOT_JSON) -> None:
        self.refusal = refusal


class ModelScan:
    """One body. `feed` it in order, then ask `finish`."""

    def __init__(self) -> None:
        self._state: _State = self._at_start
        self._found: str | EdgeRefusal | None = None
        self._is_model = False  # the member at hand
        self._text = bytearray()  # of the string or scalar at hand, if it matters
        self._most = 0  # bytes of it that matter
        self._is_escaped = False  # the string was cut behind a backslash
        self._behind_string: _State = self._at_start
        self._depth = 0
        self._window = _SMALL_WINDOW
        self._step = _SMALL_STEP

    async def feed(self, chunk: bytes) -> EdgeRefusal | None:
        """The next bytes; a refusal when they cannot be part of a JSON object."""
        at, since = 0, perf_counter()
        try:
            while at < len(chunk):
                at = self._state(chunk, at)
                if perf_counter() - since > TURN_SECONDS:
                    await asyncio.sleep(0)
                    since = perf_counter()
        except _NotJsonError as error:
            return error.refusal
        return None

    def finish(self) -> str | EdgeRefusal | None:
        """The model that the body names, None when it names none, or why it cannot be said."""
        return self._found if self._state == self._at_end else _NOT_JSON

    def _at_start(self, data: bytes, at: int) -> int:
        at = blank(data, at)
        if at < len(data):
            if data[at] != _OPEN:
                raise _NotJsonError(_NO_OBJECT)
            self._state = self._at_first_key
            at += 1
        return at

    def _at_first_key(self, data: bytes, at: int) -> int:
        at = blank(data, at)
        if at < len(data) and data[at] == _CLOSE:
            self._state = self._at_end
            return at + 1
        if at < len(data):
            self._state = self._at_key
        return at

    def _at_key(self, data: bytes, at: int) -> int:
        """The place of a key. What is whole is read at once."""
        start, end = at, min(at + self._step, len(data))
        at = skip(OTHERS, data, at, end)
        member = MEMBER.match(data, at, end)
        if member is not None:
            if _is_model(member[1]):
                self._found = _value(member[2])
            at = member.end()
        self._step = _LARGE_STEP if at - start > self._step // 2 else _SMALL_STEP
        if at > start:
            return at
        at = blank(data, at)
        if at < len(data):
            if data[at] != _QUOTE:
                raise _NotJsonError
            at += 1
            self._enter_string(self._behind_key, _MOST_KEY_BYTES)
        return at

    def _behind_key(self, data: bytes, at: int) -> int:
        self._is_model = _is_model(self._text)
        self._state = self._at_colon
        return at

    def _at_colon(self, data: bytes, at: int) -> int:
        at = blank(data, at)
        if at < len(data):
            if data[at] != _COLON:
                raise _NotJsonError
            self._state = self._at_value
            at += 1
        return at

    def _at_value(self, data: bytes, at: int) -> int:
        at = blank(data, at)
        if at == len(data):
            return at
        if data[at] == _QUOTE:
            self._enter_string(self._behind_text, MOST_NAME_BYTES if self._is_model else 0)
            return at + 1
        if data[at] in b"[{":
            self._depth, self._window = 2, _SMALL_WINDOW
            self._state = self._nested
            if self._is_model:
                self._found = NOT_TEXT
            return at + 1
        self._text.clear()
        self._state = self._scalar
        return at

    def _behind_text(self, data: bytes, at: int) -> int:
        if self._is_model:
            self._found = _text(self._text)
        self._state = self._behind_value
        return at

    def _scalar(self, data: bytes, at: int) -> int:
        """A number or word; only the model's is looked at."""
        end = skip(SCALAR, data, at)
        self._text += data[at : min(end, at + 8)]
        if end == len(data):
            return end
        if not self._text:
            raise _NotJsonError
        if self._is_model:
            self._found = None if self._text == b"null" else NOT_TEXT
        self._state = self._behind_value
        return end

    def _behind_value(self, data: bytes, at: int) -> int:
        at = blank(data, at)
        if at < len(data):
            if data[at] not in b",}":
                raise _NotJsonError
            self._state = self._at_key if data[at] == _COMMA else self._at_end
            at += 1
        return at

    def _at_end(self, data: bytes, at: int) -> int:
        at = blank(data, at)
        if at < len(data):
            raise _NotJsonError
        return at

    def _enter_string(self, behind: _State, most: int) -> None:
        self._behind_string = behind
        self._most = most
        self._is_escaped = False
        self._text.clear()
        self._state = self._string

    def _string(self, data: bytes, at: int) -> int:
        """The inside of a string, as far as it is here."""
        start = at
        if self._is_escaped:
            self._is_escaped = False
            at += 1
        end = end_of_string(data, at)
        if len(self._text) <= self._most:
            self._text += data[start : min(end, start + self._most + 1)]
        if end == len(data):
            return end
        if data[end] != _QUOTE:  # a backslash that ends the chunk
            self._text += b"\\" if len(self._text) <= self._most else b""
            self._is_escaped = True
            return len(data)
        self._state = self._behind_string
        return self._state(data, end + 1)

    def _nested(self, data: bytes, at: int) -> int:
        """What is inside a list or object of the top level: only its end matters."""
        end = min(at + self._window, len(data))
        runs = OUTSIDE.findall(data, at, end)
        cut = next((run for run in runs[-2:] if run[:1] == b'"'), None)
        brackets = b"".join(runs[:-2] + [run for run in runs[-2:] if run is not cut])
        opened = brackets.count(b"[") + brackets.count(b"{")
        if may_close(brackets, len(brackets) - opened, self._depth - 1):
            left = self._leave(data, at, end)
            if left is not None:
                return left
        else:
            self._depth += 2 * opened - len(brackets)
        self._window = min(2 * self._window, _LARGE_WINDOW)
        if cut is not None:
            self._enter_string(self._nested_again, 0)
            self._is_escaped = (len(cut) - len(cut.rstrip(b"\\"))) % 2 == 1
        return end

    def _nested_again(self, data: bytes, at: int) -> int:
        self._state = self._nested
        return at

    def _leave(self, data: bytes, at: int, end: int) -> int | None:
        """Bracket by bracket to the one that ends the value; None when it is not here."""
        depth = self._depth
        while (found := NEXT_BRACKET.match(data, at, end)) is not None:
            at = found.end()
            depth += 1 if found[1] in b"[{" else -1
            if depth == 1:
                self._state = self._behind_value
                return at
        self._depth = depth
        return None


_OPEN, _CLOSE, _QUOTE, _COLON, _COMMA = b'{}":,'


def _value(raw: bytes) -> str | EdgeRefusal | None:
    if raw.startswith(b'"'):
        return _text(raw[1:-1])
    return None if raw == b"null" else NOT_TEXT


def _is_model(key: bytes | bytearray) -> bool:
    if b"\\" not in key:
        return key == b"model"
    return len(key) <= _MOST_KEY_BYTES and _decoded(key) == "model"


def _text(raw: bytes | bytearray) -> str | EdgeRefusal:
    return _TOO_LONG if len(raw) > MOST_NAME_BYTES else _decoded(raw)


def _decoded(raw: bytes | bytearray) -> str:
    try:
        text: str = orjson.loads(b'"%b"' % bytes(raw))
    except orjson.JSONDecodeError:
        raise _NotJsonError from None
    return text
