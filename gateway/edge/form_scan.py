"""Finds the field "model" of a multipart form while the form arrives."""

import asyncio
import logging
from time import perf_counter

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from gateway.edge.json_scan import MOST_NAME_BYTES, TURN_SECONDS
from gateway.edge.refusals import EdgeRefusal, refuse

MOST_PARTS = 1000
KIND = b"multipart/form-data"
_STEP_BYTES = 4096  # the parser reads some bytes one by one

logging.getLogger("python_multipart").setLevel(logging.ERROR)  # it warns of each bad form

_BROKEN = refuse("invalid_request_error", "the request's body is not multipart/form-data.")
_CUT = refuse("invalid_request_error", "the form ends before its last boundary.")
_NO_BOUNDARY = refuse("invalid_request_error", "Content-Type names no boundary, or not a good one.")
_TOO_LONG = refuse("invalid_request_error", "the form's field 'model' is too long.")
_NOT_TEXT = refuse("invalid_request_error", "the form's field 'model' is not UTF-8.")
_TOO_MANY = refuse("invalid_request_error", f"a form may have {MOST_PARTS} parts at most.")


class FormReader:
    """One form. A file of the name "model" is no field; of several fields the last counts."""

    def __init__(self, boundary: bytes) -> None:
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._part_begins,
                "on_header_field": self._on_header_name,
                "on_header_value": self._on_header_value,
                "on_header_end": self._header_ends,
                "on_headers_finished": self._headers_end,
                "on_part_data": self._on_data,
                "on_part_end": self._part_ends,
                "on_end": self._form_ends,
            },
        )
        self._found: str | None = None
        self._refusal: EdgeRefusal | None = None
        self._parts = 0
        self._header, self._value = b"", b""
        self._disposition = b""
        self._text: bytearray | None = None  # of the part at hand, if it is the field
        self._is_over = False

    async def feed(self, chunk: bytes) -> EdgeRefusal | None:
        """The next bytes; a refusal when they are no such form."""
        since = perf_counter()
        for at in range(0, len(chunk), _STEP_BYTES):
            try:
                self._parser.write(chunk[at : at + _STEP_BYTES])
            except FormParserError:
                return _BROKEN
            if self._refusal is not None:
                return self._refusal
            if perf_counter() - since > TURN_SECONDS:
                await asyncio.sleep(0)
                since = perf_counter()
        return None

    def finish(self) -> str | EdgeRefusal | None:
        """The model that the form names; None when it names none."""
        return self._found if self._is_over else _CUT

    def _part_begins(self) -> None:
        self._parts += 1
        if self._parts > MOST_PARTS:
            self._refusal = _TOO_MANY
        self._header, self._value, self._disposition = b"", b"", b""

    def _on_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_ends(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header, self._value = b"", b""

    def _headers_end(self) -> None:
        _, options = parse_options_header(self._disposition)
        is_field = options.get(b"name") == b"model" and b"filename" not in options
        self._text = bytearray() if is_field else None

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        if self._text is not None:
            self._text += data[start:end]
            if len(self._text) > MOST_NAME_BYTES:
                self._refusal = _TOO_LONG

    def _part_ends(self) -> None:
        if self._text is None:
            return
        try:
            self._found = self._text.decode()
        except UnicodeDecodeError:
            self._refusal = _NOT_TEXT
        self._text = None

    def _form_ends(self) -> None:
        self._is_over = True


def form_reader(content_type: bytes) -> FormReader | EdgeRefusal:
    """A reader of the form that this Content-Type announces."""
    _, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if not boundary:
        return _NO_BOUNDARY
    try:
        return FormReader(boundary)
    except FormParserError:
        return _NO_BOUNDARY
