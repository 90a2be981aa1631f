"""Token counts of every shape of answer, wherever the network cuts it."""

import json
import random
from typing import Any

import pytest

from gateway.edge.tail import TAIL_BYTES, BodyTail, NoTail, StreamTail, Tail, tail_for
from gateway.edge.token_counts import TokenCounts, last_usage

USAGE = {
    "completion_tokens": 4,
    "prompt_tokens": 32,
    "total_tokens": 36,
    "prompt_tokens_details": {"cached_tokens": 31},
}
TIMINGS = {"cache_n": 31, "prompt_n": 1, "prompt_ms": 30.07, "predicted_n": 4, "predicted_ms": 2.5}
RESPONSES = {
    "input_tokens": 32,
    "output_tokens": 4,
    "total_tokens": 36,
    "input_tokens_details": {"cached_tokens": 31},
}
MESSAGES = {"cache_read_input_tokens": 31, "input_tokens": 1, "output_tokens": 4}
ALL = TokenCounts(32, 4, 31)
CHOICE = {"finish_reason": "length", "index": 0, "message": {"content": "What can I do"}}
LONG = "words and more words, " * 9_000  # some 200 kB
TRAP = 'the model says {"usage": {"prompt_tokens": 9, "completion_tokens": 9}} and \\"usage\\": {'
LLAMA_COMPLETION = {"content": "a lot", "tokens_predicted": 4, "generation_settings": {"n": 4}}


def body(**fields: Any) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def sse(*events: dict[str, Any], is_named: bool = False) -> bytes:
    names = [f"event: {each['type']}\n" if is_named else "" for each in events]
    texts = [json.dumps(each, separators=(",", ":")) for each in events]
    return "".join(f"{n}data: {t}\n\n" for n, t in zip(names, texts, strict=True)).encode()


def deltas(count: int, text: str = "Hello") -> list[dict[str, Any]]:
    return [{"choices": [{"index": 0, "delta": {"content": text}}], "usage": None}] * count


def message_start(**usage: int) -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": "m", "content": [], "usage": usage}}


def said(text: str, count: int = 1) -> list[dict[str, Any]]:
    delta = {"type": "content_block_delta", "index": 0, "delta": {"text": text}}
    return [delta] * count


MESSAGE_END = {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 4}}
START = message_start(cache_read_input_tokens=31, input_tokens=1, output_tokens=0)
DONE = b"data: [DONE]\n\n"
COMPLETED = {"type": "response.completed", "response": {"output": [LONG], "usage": RESPONSES}}

BODIES = {
    "chat": (body(choices=[CHOICE], usage=USAGE, id="c", timings=TIMINGS), ALL),
    "chat, spaced": (json.dumps({"usage": USAGE}, indent=2).encode(), ALL),
    "a long text after it": (body(usage=USAGE, choices=[LONG]), ALL),
    "a long text before it": (body(choices=[LONG], usage=USAGE), ALL),
    "between long texts": (body(choices=[LONG], usage=USAGE, prompt_logprobs=[LONG]), ALL),
    "llama.cpp's completion": (body(**LLAMA_COMPLETION, timings=TIMINGS), ALL),
    "with probabilities": (body(timings=TIMINGS, completion_probabilities=[LONG]), ALL),
    "messages": (body(content=[{"text": "Hi"}], usage=MESSAGES), ALL),
    "messages, written to the cache": (
        body(usage={**MESSAGES, "input_tokens": 0, "cache_creation_input_tokens": 1}),
        ALL,
    ),
    "responses": (body(output=["Hi"], usage=RESPONSES), ALL),
    "embeddings": (
        body(usage={"prompt_tokens": 5, "total_tokens": 5}, data=[0.5] * 9_000),
        TokenCounts(5, 0),
    ),
    "rerank": (body(usage={"total_tokens": 9}, results=[]), TokenCounts(9, 0)),
    "n choices": (
        body(usage={"prompt_tokens": 3, "completion_tokens": 20}, timings=TIMINGS),
        TokenCounts(3, 20, 31),
    ),
    "the model's words": (body(choices=[{"text": TRAP}], usage=USAGE), ALL),
    "the model's words after it": (body(usage=USAGE, choices=[{"text": TRAP}]), ALL),
    "the model's words alone": (body(choices=[{"text": TRAP}], said='"usage'), TokenCounts()),
    "a tool's arguments": (
        body(content=[{"input": {"usage": {"input_tokens": 9}}}], usage=MESSAGES),
        ALL,
    ),
    "a tool's schema after it": (
        body(usage=RESPONSES, tools=[{"usage": {"type": "object"}}, {"usage": None}]),
        ALL,
    ),
    "a count, not a use": (body(input_tokens=32), TokenCounts()),
    "no numbers": (body(usage={"prompt_tokens": True, "completion_tokens": -1}), TokenCounts()),
    "no JSON": (b'{"usage": {"prompt_tokens": 1, }', TokenCounts()),
    "a list": (b'{"usage": [1], "timings": {}}', TokenCounts()),
    "nothing": (b"", TokenCounts()),
}
STREAMS = {
    "chat": (sse(*deltas(100), {"choices": [], "usage": USAGE, "timings": TIMINGS}) + DONE, ALL),
    "chat, not asked for usage": (sse(*deltas(9), {"timings": TIMINGS}) + DONE, ALL),
    "llama.cpp's completion": (sse({**LLAMA_COMPLETION, "timings": TIMINGS}), ALL),
    "usage in each event": (sse({"usage": {"completion_tokens": 1}}, {"usage": USAGE}), ALL),
    "messages": (sse(START, *said("Hi", 3), MESSAGE_END, is_named=True), ALL),
    "long messages": (sse(START, *said("Hi", 900), MESSAGE_END, is_named=True), ALL),
    "messages whose start llama.cpp left out": (
        sse(*said("Hi"), MESSAGE_END, is_named=True),
        TokenCounts(None, 4),
    ),
    "messages, cut": (sse(START, *said("Hi")), TokenCounts(32, None, 31)),
    "long messages, cut": (sse(START, *said("Hi", 900)), TokenCounts(32, None, 31)),
    "messages, counted again": (
        sse(START, {**MESSAGE_END, "usage": MESSAGES | {"input_tokens": 2}}),
        TokenCounts(33, 4, 31),
    ),
    "responses": (sse(COMPLETED, is_named=True), ALL),
    "the model's words": (sse(*deltas(99, TRAP), {"usage": USAGE}, *deltas(9, TRAP)), ALL),
    "the model's words alone": (sse(*deltas(99, TRAP)), TokenCounts()),
    "no counts": (sse(*deltas(3)) + DONE, TokenCounts()),
}


def counted(tail: Tail, text: bytes, sizes: list[int]) -> TokenCounts:
    at = 0
    for size in sizes:
        tail.add(text[at : at + size])
        at += size
    tail.add(text[at:])
    return tail.counts()


def all_cuts(text: bytes) -> list[list[int]]:
    """In one piece; in two, at each place near its ends; in small and in random pieces."""
    chance = random.Random(1)
    ends = [*range(min(400, len(text))), *range(max(0, len(text) - 900), len(text))]
    pieces = [[chance.randint(0, 9_000) for _ in range(100)] for _ in range(20)]
    return [[], *([at] for at in ends), [97] * (len(text) // 97), *pieces]


@pytest.mark.parametrize("name", BODIES)
def test_a_body_s_counts_are_found_wherever_they_stand(name: str) -> None:
    text, expected = BODIES[name]
    for sizes in all_cuts(text):
        assert counted(BodyTail(), text, sizes) == expected, sizes


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_s_counts_are_found_wherever_it_is_cut(name: str) -> None:
    text, expected = STREAMS[name]
    for sizes in all_cuts(text):
        assert counted(StreamTail(), text, sizes) == expected, sizes


def test_only_json_and_event_streams_are_looked_at() -> None:
    kinds = {
        b"application/json; charset=utf-8": BodyTail,
        b"Text/Event-Stream": StreamTail,
        b"text/vtt": NoTail,
        b"audio/mpeg": NoTail,
    }
    for kind, tail in kinds.items():
        assert isinstance(tail_for([(b"content-type", kind)]), tail)
    assert counted(NoTail(), BODIES["chat"][0], []) == TokenCounts()


def test_little_of_a_long_stream_is_kept() -> None:
    tail = StreamTail()
    for size in [200] * 2_000 + [100_000] * 20:
        tail.add(b"x" * size)
    kept = sum(len(piece) for piece in [*tail._older, *tail._newest])
    assert kept <= 2 * TAIL_BYTES


def test_events_are_counted_and_the_last_one_s_end_is_known() -> None:
    tail = StreamTail()
    assert tail.ends_event()
    tail.add(sse(*deltas(3)) + b"data: hal")
    assert (tail.events, tail.ends_event()) == (3, False)
    tail.add(b"f\n")
    tail.add(b"\n")
    assert tail.ends_event()


def test_many_objects_by_that_name_do_not_hold_up_the_edge() -> None:
    text = body(usage=USAGE) + b'"usage":{},' * 10_000
    assert last_usage(text) == {}  # after so many tries nobody looks further
