"""A usage record on the wire: read as it was written, and none where a value is wrong."""

from dataclasses import replace
from typing import Any

import pytest

from tests.usage_cast import CALL, many
from wire.usage import (
    FIELD,
    FIELD_OF_MANY,
    Usage,
    decode_entry,
    decode_usage,
    encode_line,
    encode_usage,
    pack_lines,
)


def decoded(**changes: Any) -> Usage | None:
    fields = encode_usage(replace(CALL, **changes))
    return decode_usage({name.encode(): value for name, value in fields.items()})


def test_a_record_is_read_as_it_was_written() -> None:
    assert decoded() == CALL


@pytest.mark.parametrize(
    "changes",
    [
        {"request_id": ""},
        {"request_id": "x" * 37},
        {"request_id": None},
        {"route": 5},
        {"route": "a\0b"},
        {"at": float("nan")},
        {"at": 1e30},
        {"at": -1.0},
        {"at": None},
        {"duration_ms": True},
        {"duration_ms": "5"},
        {"status": 10**6},
        {"bytes_out": -1},
        {"bytes_out": 1.5},
        {"owner_id": 2**63},
        {"prompt_tokens": 2**31},
        {"is_aborted": "no"},
        {"queue_ms": None},
        {"cached_tokens": -1},
        {"is_estimated": None},
    ],
)
def test_a_record_with_a_wrong_value_is_none(changes: dict[str, Any]) -> None:
    assert decoded(**changes) is None


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"5", b"\xff", b"[" * 9999, b'{"foreign": 1}'])
def test_a_payload_of_another_kind_is_none(text: bytes) -> None:
    assert decode_usage({FIELD.encode(): text}) is None
    assert decode_usage({b"other": text}) is None


def test_an_entry_of_many_records_is_read_line_by_line() -> None:
    lines = [encode_line(each) for each in many(3)]
    entry = {FIELD_OF_MANY.encode(): pack_lines([lines[0], b"{", lines[1], b"", lines[2]])}
    first, second, third = many(3)
    assert decode_entry(entry) == [first, None, second, None, third]


def test_an_entry_of_an_earlier_edge_is_read() -> None:
    assert decode_entry({FIELD.encode(): encode_line(CALL)}) == [CALL]
    assert decode_entry({b"foreign": b"1"}) == [None]


def test_long_texts_are_cut_to_their_columns() -> None:
    record = decoded(route="/" * 500, preset="p" * 500, code="c" * 500)
    assert record is not None
    assert (len(record.route), len(record.preset), len(record.code)) == (100, 63, 40)
