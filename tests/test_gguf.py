"""Headers of GGUF files: facts of good ones, sentences for bad ones, harm from none."""

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes.catalogue import cursor
from lanes.catalogue.cursor import U64, Cursor
from lanes.catalogue.facts import CutShortError, Facts
from lanes.catalogue.gguf import GgufHeader, read_gguf
from lanes.catalogue.opening import opened
from tests.model_files import KEYS, Memory, gguf, read, text

WHOLE = gguf()
A_KEY = text("k")


def facts(content: bytes) -> Facts:
    """Those of a header that can be read."""
    header = read(content)
    assert isinstance(header, GgufHeader), header
    return header.facts


def test_a_header_tells_the_facts() -> None:
    assert facts(WHOLE) == Facts(
        architecture="llama",
        parameters=192,
        quantisation="Q4_K_M",
        context_length=4096,
        vocabulary_size=3,
        has_chat_template=True,
    )


def test_the_file_must_reach_to_the_end_of_its_last_tensor() -> None:
    header = read(WHOLE)
    assert isinstance(header, GgufHeader)
    assert header.bytes_needed == len(WHOLE) - 640 + 512 + 36


def test_the_demo_model_is_read(demo_model: Path) -> None:
    with opened(str(demo_model)) as source:
        header = read_gguf(source)
    assert header.facts == Facts("llama", 134_515_008, "Q4_1", 8192, 49152, True)
    assert header.bytes_needed == demo_model.stat().st_size


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"general.file_type": 7}, {"quantisation": "Q8_0"}),
        ({"general.file_type": 4711}, {"quantisation": "F32"}),  # what most bytes are
        ({"general.file_type": "x"}, {"quantisation": "F32"}),
        ({"tokenizer.chat_template": " "}, {"has_chat_template": False}),
        ({"tokenizer.ggml.tokens": 3, "llama.vocab_size": 9}, {"vocabulary_size": 9}),
        ({"llama.context_length": 0}, {"context_length": None}),
        ({"llama.context_length": 2**64 - 1}, {"context_length": None}),
        ({"llama.context_length": True}, {"context_length": None}),
        ({"general.architecture": 1}, {"architecture": "", "context_length": None}),
        ({"general.architecture": "l\0l\n"}, {"architecture": "ll"}),
        ({"general.architecture": "x" * 9000}, {"architecture": "x" * 64}),
    ],
)
def test_each_key_is_read_for_what_it_is(
    changed: dict[str, Any], expected: dict[str, object]
) -> None:
    found = facts(gguf(KEYS | changed))
    assert {name: getattr(found, name) for name in expected} == expected


def test_keys_may_come_in_any_order_and_lists_of_any_kind() -> None:
    keys = dict(reversed(KEYS.items())) | {"scores": [0.5] * 9, "f": 1.5, "b": True}
    assert facts(gguf(keys)) == facts(WHOLE)


def test_tokens_of_every_length_are_gone_through() -> None:
    tokens = ["x" * (n * 7 % 300) for n in range(5000)] + ["é" * 40_000, "end"]
    found = facts(gguf(KEYS | {"tokenizer.ggml.tokens": tokens}))
    assert (found.vocabulary_size, found.has_chat_template) == (5002, True)


@given(st.lists(st.binary(max_size=70), max_size=300), st.binary(max_size=20), st.integers(8, 64))
@settings(max_examples=60)
def test_going_through_texts_ends_where_they_end(
    texts: list[bytes], after: bytes, window: int
) -> None:
    content = b"".join(U64.pack(len(each)) + each for each in texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cursor, "WINDOW", window)
        place = Cursor(Memory(content + after))
        place.skip_texts(len(texts))
    assert place.offset == len(content)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "It is empty so far"),
        (b"GG", "It is empty so far"),
        (b"\0" * 4096, "begins with zeros"),
        (b"PK\3\4" + b"\0" * 100, "is not a GGUF file"),
        (b"GGUF" + struct.pack("<I", 1), "is GGUF version 1"),
        (b"GGUF" + struct.pack("<I", 99), "is GGUF version 99"),
        (b"GGUF" + struct.pack(">I", 3), "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**40, 1), "more tensors or keys"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 2**63), "more tensors or keys"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + A_KEY + struct.pack("<I", 77), "of type 77"),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + A_KEY + struct.pack("<IIQ", 9, 9, 1),
            "a list of type 9",
        ),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + A_KEY + struct.pack("<IIQ", 9, 8, 2**60),
            "longer lists",
        ),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + A_KEY + struct.pack("<IIQ", 9, 10, 2**61),
            "far too much are there",
        ),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + U64.pack(2**64 - 1), "still being copied"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + A_KEY + struct.pack("<I", 5), "5 dimensions"),
    ],
)
def test_what_is_no_model_is_told_in_a_sentence(content: bytes, words: str) -> None:
    told = read(content)
    assert isinstance(told, str)
    assert words in told
    assert told.endswith(".")


@pytest.mark.parametrize("length", [*range(0, 400, 13), len(WHOLE) - 640 + 547])
def test_a_file_that_is_being_copied_is_cut_short(length: int) -> None:
    with pytest.raises(CutShortError):
        read_gguf(Memory(WHOLE[:length]))


def test_a_header_beyond_all_measure_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursor, "MOST_BYTES", 100)
    assert "Its header is over" in str(read(WHOLE))


def test_a_file_that_shrinks_while_it_is_read_is_cut_short() -> None:
    source = Memory(WHOLE)
    source.content = WHOLE[:60]
    with pytest.raises(CutShortError):
        read_gguf(source)


@given(st.binary(max_size=600))
@settings(max_examples=300)
def test_no_bytes_after_the_magic_do_harm(content: bytes) -> None:
    assert read(b"GGUF" + struct.pack("<I", 3) + content)


@given(
    st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=8)
)
@settings(max_examples=600)
def test_no_change_of_a_whole_file_does_harm(changes: list[tuple[int, int]]) -> None:
    content = bytearray(WHOLE)
    for place, value in changes:
        content[place] = value
    header = read(bytes(content))
    if isinstance(header, str):
        assert header.endswith(".")
    else:
        assert header.bytes_needed <= len(WHOLE)
        assert header.facts.parameters is None or header.facts.parameters < 2**63
