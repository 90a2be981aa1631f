"""The model of a large JSON body, found while the body arrives in pieces of any size."""

import asyncio
import time
from collections.abc import Sequence
from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.json_scan import ModelScan
from gateway.edge.refusals import EdgeRefusal
from tests.uncollected import uncollected

KEYS = st.sampled_from(["model", "Model", "mode", "models", "x", "", 'a"b', "a\\", "модель"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-99, 99), st.floats(allow_nan=False), st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
MEMBERS = st.lists(st.tuples(KEYS, VALUES), max_size=6)
LAYOUTS = st.sampled_from([0, orjson.OPT_INDENT_2])
GAPS = st.sampled_from(["", " ", "\n\t", "\r\n  "])


async def _scan(body: bytes, cuts: Sequence[int] = ()) -> str | EdgeRefusal | None:
    scan = ModelScan()
    marks = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    for start, end in pairwise(marks):
        refusal = await scan.feed(body[start:end])
        if refusal is not None:
            return refusal
    return scan.finish()


def _said(found: str | EdgeRefusal | None) -> str | None:
    return found.words.partition(": ")[2] if isinstance(found, EdgeRefusal) else found


def _by_orjson(body: bytes) -> str | None:
    model = orjson.loads(body).get("model")
    return model if model is None or isinstance(model, str) else "'model' is not a string."


def _spelt(text: str, *, is_escaped: bool) -> str:
    """A JSON string, plain or with every letter as an escape."""
    if is_escaped and all(ord(letter) < 0x10000 for letter in text):
        return '"' + "".join(f"\\u{ord(letter):04x}" for letter in text) + '"'
    return orjson.dumps(text).decode()


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Objects with any gaps, doubled members, and keys spelt with and without escapes."""
    gaps = [draw(GAPS) for _ in range(4)]
    members = [
        f"{gaps[0]}{_spelt(key, is_escaped=draw(st.booleans()))}{gaps[1]}:{gaps[2]}"
        f"{orjson.dumps(value, option=draw(LAYOUTS)).decode()}{gaps[3]}"
        for key, value in draw(MEMBERS)
    ]
    return (gaps[1] + "{" + ",".join(members) + gaps[2] + "}" + gaps[0]).encode()


@given(body=bodies(), cuts=st.lists(st.integers(0, 10_000), max_size=8))
def test_it_says_what_a_parser_of_the_whole_says(body: bytes, cuts: list[int]) -> None:
    assert _said(asyncio.run(_scan(body, cuts))) == _by_orjson(body)


@given(body=bodies())
def test_it_may_come_byte_by_byte(body: bytes) -> None:
    assert _said(asyncio.run(_scan(body, range(len(body))))) == _by_orjson(body)


@given(body=bodies(), cuts=st.lists(st.integers(0, 10_000), max_size=4), at=st.integers(0, 10_000))
def test_a_body_without_its_end_is_no_json(body: bytes, cuts: list[int], at: int) -> None:
    part = body.rstrip()[:-1][: at % len(body)]
    assert isinstance(asyncio.run(_scan(part, cuts)), EdgeRefusal)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "the request's body is not JSON."),
        (b"[1]", "the request's body is not a JSON object."),
        (b'"model"', "the request's body is not a JSON object."),
        (b"\xef\xbb\xbf{}", "the request's body is not a JSON object."),
        (b'{"a":1} {"model":"qwen"}', "the request's body is not JSON."),
        (b'{"a":1}}', "the request's body is not JSON."),
        (b'{"a" "model":"qwen"}', "the request's body is not JSON."),
        (b'{"a":,"model":"qwen"}', "the request's body is not JSON."),
        (b'{"a":1,}', "the request's body is not JSON."),
        (b'{,"a":1}', "the request's body is not JSON."),
        (b'{"model":"\xff"}', "the request's body is not JSON."),
        (b'{"model":"\\ud800"}', "the request's body is not JSON."),
        (b'{"mod\\qel":1}', "the request's body is not JSON."),
        (b'{"model":["qwen"],"a":1}', "'model' is not a string."),
        (b'{"model":17}', "'model' is not a string."),
        (b'{"model":"' + b"x" * 5000 + b'"}', "'model' is too long."),
    ],
)
@pytest.mark.parametrize("is_whole", [True, False])
async def test_what_names_no_model_is_refused(body: bytes, words: str, *, is_whole: bool) -> None:
    found = await _scan(body, () if is_whole else range(len(body)))
    assert isinstance(found, EdgeRefusal)
    assert (found.status, _said(found)) == (400, words)


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"no","mod\\u0065l":"qwen"}',
        b'{"\\u006d\\u006f\\u0064\\u0065\\u006c":"qwen"}',
        b'{"model":7,"model":"qwen"}',
        b'{"model":"' + b"x" * 5000 + b'","model":"qwen"}',
        b'{"a":"\\\\","model":"qwen"}',
        b'{"a":{"model":"no"},"b":["model","no"],"c":"\\"model\\":","model":"qwen"}',
        b'{"model":"qwen","a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":{"model":"no"}}}}}}}}}',
        b'{"' + b"k" * 3000 + b'":1,"model":"qwen"}',
        b'{"a":' + b"[" * 5000 + b"]" * 5000 + b',"model":"qwen"}',
        b'{"a":' + b'{"model":' * 3000 + b"1" + b"}" * 3000 + b',"model":"qwen"}',
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000, 10**6])
async def test_only_the_last_of_the_top_level_counts(body: bytes, size: int) -> None:
    assert await _scan(body, range(0, len(body), size)) == "qwen"


HARD = {
    "one long text": b'{"x":"%b"}' % (b"iVBORw0K" * 500_000),
    "lists in lists": b'{"x":%b' % (b"[" * 4_000_000),
    "texts": b'{"x":[%b1]}' % (b'"a","b",' * 500_000),
    "numbers": b'{"x":[%b1]}' % (b"123,45.6," * 400_000),
    "escapes": b'{"x":"%b"}' % (b'\\\\\\"' * 1_000_000),
    "escaped keys": b'{%b"x":1}' % (b'"\\u0061":1,' * 360_000),
    "deep members": b'{%b"x":1}' % (b'"a":[[[[[[[[]]]]]]]],' * 190_000),
    "models": b'{%b"x":1}' % (b'"model":"qwen",' * 260_000),
    "small lists": b'{"x":[%b1]}' % (b"[[]]," * 800_000),
    "ends of lists": b'{"x":%b%b}' % (b"[" * 2_000_000, b"]" * 2_000_000),
    "blanks": b'{"x":1%b}' % (b" " * 4_000_000),
}


@pytest.mark.parametrize("name", HARD)
async def test_no_body_keeps_the_loop_for_long(name: str) -> None:
    scan, body = ModelScan(), HARD[name]
    longest, last = 0.0, time.thread_time()
    is_over = False

    async def watch() -> None:
        nonlocal longest, last
        while not is_over:
            longest, last = max(longest, time.thread_time() - last), time.thread_time()
            await asyncio.sleep(0)

    with uncollected():  # a look at all that the tests have made takes longer
        watcher = asyncio.create_task(watch())
        for at in range(0, len(body), 131_072):
            assert await scan.feed(body[at : at + 131_072]) is None
            await asyncio.sleep(0)
        is_over = True
        await watcher
    assert longest < 0.05  # of the up to three seconds of the processor that a body takes
