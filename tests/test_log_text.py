"""Bytes of a log as lines: whole, plain, of bounded length."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.log_text import LONGEST_LINE, plain, plain_lines, tail_start, whole

BYTES = st.one_of(
    st.binary(max_size=200),
    st.text(alphabet="ab\n\r\x1b[0;31mé漢\u202e", max_size=100).map(str.encode),
)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain\ttext", "plain\ttext"),
        ("\x1b[31;1mred\x1b[0m\x07 alarm", "red alarm"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x1b\\ end", "link end"),
        ("\x1b]0;no end of this", "]0;no end of this"),
        ("\x1b(Bset \x1b7saved", "set saved"),
        ("loading 10%\rloading 20%\r", "loading 20%"),
        ("a\x00b\x08c\x7f\x9b31m", "abc31m"),
        ("abc\u202egpj.exe\u2069\u2028", "abcgpj.exe"),
        ("half \x1b[", "half ["),
        ("", ""),
    ],
)
def test_a_line_loses_colours_controls_and_what_it_wrote_over(line: str, shown: str) -> None:
    assert plain(line) == shown


def test_a_long_line_is_cut_and_says_by_how_much() -> None:
    assert plain("x" * LONGEST_LINE) == "x" * LONGEST_LINE
    assert plain("x" * (LONGEST_LINE + 7)).endswith("x … (7 more characters)")


@given(BYTES)
def test_whatever_is_in_a_log_can_be_shown(data: bytes) -> None:
    for line in plain_lines(data):
        line.encode()
        assert not [each for each in line if unicodedata.category(each) == "Cc" and each != "\t"]


@pytest.mark.parametrize(
    ("data", "is_over", "used"),
    [
        (b"", False, 0),
        (b"half", False, 0),
        (b"one\ntw", False, 4),
        (b"one\ntw", True, 6),
        (b"a longer line", False, 13),
        (b"10%\r20%\r30% and more", False, 8),
        ("漢字漢字".encode()[:11], False, 9),
        (b"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8", False, 8),
    ],
)
def test_lines_are_told_when_they_are_whole_or_too_long(
    data: bytes, is_over: bool, used: int
) -> None:
    assert whole(data, is_over=is_over, most=8) == used


@given(BYTES, st.integers(8, 50))
def test_read_piece_by_piece_no_byte_is_lost_or_doubled(data: bytes, most: int) -> None:
    offset, pieces = 0, []
    while offset < len(data):
        piece = data[offset : offset + most]
        used = whole(piece, is_over=offset + len(piece) == len(data), most=most)
        assert used > 0
        pieces.append(piece[:used])
        offset += used
    assert b"".join(pieces) == data


@pytest.mark.parametrize(
    ("data", "count", "is_cut", "start"),
    [
        (b"a\nb\nc\n", 2, False, 2),
        (b"a\nb\nc", 2, False, 2),
        (b"a\nb\n", 9, False, 0),
        (b"a\nb\n", 9, True, 2),
        (b"no line", 1, True, 0),
        (b"", 3, False, 0),
    ],
)
def test_the_last_lines_begin_there(data: bytes, count: int, is_cut: bool, start: int) -> None:
    assert tail_start(data, count, is_cut=is_cut) == start


@given(BYTES, st.integers(1, 20))
def test_the_last_lines_are_the_last_lines(data: bytes, count: int) -> None:
    shown = plain_lines(data[tail_start(data, count, is_cut=False) :])
    assert shown == plain_lines(data)[-count:]
