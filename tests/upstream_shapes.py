"""Answers of model servers in the shapes that the official clients parse, route by route."""

import asyncio
import base64
import json
import struct
from collections.abc import Callable, Iterable
from typing import Any

from tests.upstreams import STREAM_HEAD, USAGE, Seen, chunk, event, response

Shape = dict[str, Any]
VECTOR = (0.5, 0.25)
SPEECH = b"ID3 not really music"
PICTURE = base64.b64encode(b"\x89PNG a picture").decode()
WEATHER = {"city": "Bergen", "days": 3}
WORDS = ("Hello", " there")


async def every_route(seen: Seen, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server that has all routes; the last parts of the path choose the shape."""
    path = seen.path.partition("?")[0].removeprefix("/v1")
    if path in _FILES:
        writer.write(_FILES[path])
    elif path in _FORMS:
        writer.write(response(json.dumps(_FORMS[path]).encode()))
    else:
        _answer_json(path, json.loads(seen.body), writer)
    await writer.drain()


def _answer_json(path: str, body: Shape, writer: asyncio.StreamWriter) -> None:
    if body.get("stream"):
        events = _STREAMS[path](body)
        writer.write(STREAM_HEAD + b"".join(map(chunk, events)) + b"0\r\n\r\n")
    else:
        writer.write(response(json.dumps(_WHOLE[path](body)).encode()))


def _chat(body: Shape) -> Shape:
    message: Shape = {"role": "assistant", "content": "".join(WORDS)}
    if body.get("tools"):
        message |= {"content": None, "tool_calls": [_tool_call(body)]}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    answer = {"id": "chat-1", "object": "chat.completion", "created": 1, "model": "m"}
    return answer | {"choices": [choice], "usage": USAGE}


def _tool_call(body: Shape) -> Shape:
    name = body["tools"][0]["function"]["name"]
    called = {"name": name, "arguments": json.dumps(WEATHER)}
    return {"id": "call-1", "type": "function", "function": called}


def _chat_stream(body: Shape) -> Iterable[bytes]:
    yield event(None)
    for word in WORDS:
        yield event(word)
    if (body.get("stream_options") or {}).get("include_usage"):
        yield _data(_chat(body) | {"object": "chat.completion.chunk", "choices": []})
    yield b"data: [DONE]\n\n"


def _completion(body: Shape) -> Shape:
    choice = {"index": 0, "text": "".join(WORDS), "finish_reason": "stop", "logprobs": None}
    answer = {"id": "c", "object": "text_completion", "created": 1, "model": "m"}
    return answer | {"choices": [choice], "usage": USAGE}


def _embeddings(body: Shape) -> Shape:
    inputs = body["input"] if isinstance(body["input"], list) else [body["input"]]
    vector: object = list(VECTOR)
    if body.get("encoding_format") == "base64":
        vector = base64.b64encode(struct.pack("<2f", *VECTOR)).decode()
    data = [
        {"object": "embedding", "index": index, "embedding": vector} for index in range(len(inputs))
    ]
    return {"object": "list", "model": "m", "data": data, "usage": USAGE}


def _response(body: Shape, status: str = "completed") -> Shape:
    part = {"type": "output_text", "text": "".join(WORDS), "annotations": []}
    item = {"type": "message", "id": "msg-1", "role": "assistant", "status": "completed"}
    output = [item | {"content": [part]}] if status == "completed" else []
    answer = {"id": "resp-1", "object": "response", "created_at": 1, "model": "m"}
    answer |= {"status": status, "output": output, "parallel_tool_calls": True}
    answer |= {"tool_choice": "auto", "tools": body.get("tools", []), "error": None}
    return answer | {"usage": {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}}


def _response_stream(body: Shape) -> Iterable[bytes]:
    place = {"item_id": "msg-1", "output_index": 0, "content_index": 0}
    deltas = [("response.output_text.delta", place | {"delta": word}) for word in WORDS]
    events: list[tuple[str, Shape]] = [
        ("response.created", {"response": _response(body, "in_progress")}),
        *deltas,
        ("response.output_text.done", place | {"text": "".join(WORDS)}),
        ("response.completed", {"response": _response(body)}),
    ]
    for number, (name, fields) in enumerate(events):
        yield _named(name, fields | {"sequence_number": number})


def _message(body: Shape) -> Shape:
    content: list[Shape] = [{"type": "text", "text": "".join(WORDS)}]
    if body.get("tools"):
        name = body["tools"][0]["name"]
        content = [{"type": "tool_use", "id": "tool-1", "name": name, "input": WEATHER}]
    message: Shape = {"id": "msg-1", "type": "message", "role": "assistant", "model": "m"}
    message |= {"content": content, "stop_reason": "end_turn", "stop_sequence": None}
    return message | {"usage": {"input_tokens": 7, "output_tokens": 3}}


def _message_stream(body: Shape) -> Iterable[bytes]:
    begun = _message(body) | {"content": [], "stop_reason": None}
    yield _named("message_start", {"message": begun})
    yield _named("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}})
    yield _named("ping", {})
    for word in WORDS:
        delta = {"type": "text_delta", "text": word}
        yield _named("content_block_delta", {"index": 0, "delta": delta})
    yield _named("content_block_stop", {"index": 0})
    ended = {"delta": {"stop_reason": "end_turn", "stop_sequence": None}}
    yield _named("message_delta", ended | {"usage": {"output_tokens": 3}})
    yield _named("message_stop", {})


def _data(value: Shape) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _named(name: str, fields: Shape) -> bytes:
    return f"event: {name}\n".encode() + _data({"type": name} | fields)


def _counted(_: Shape) -> Shape:
    return {"object": "response.input_tokens", "input_tokens": 7}


def _picture(_: Shape) -> Shape:
    return {"created": 1, "data": [{"b64_json": PICTURE}]}


_WHOLE: dict[str, Callable[[Shape], Shape]] = {
    "/chat/completions": _chat,
    "/completions": _completion,
    "/embeddings": _embeddings,
    "/responses": _response,
    "/responses/input_tokens": _counted,
    "/images/generations": _picture,
    "/messages": _message,
    "/messages/count_tokens": _counted,
}
_STREAMS: dict[str, Callable[[Shape], Iterable[bytes]]] = {
    "/chat/completions": _chat_stream,
    "/responses": _response_stream,
    "/messages": _message_stream,
}
_FORMS: dict[str, Shape] = {
    "/audio/transcriptions": {"text": "".join(WORDS)},
    "/audio/translations": {"text": "".join(WORDS)},
    "/images/edits": _picture({}),
}
_FILES = {"/audio/speech": response(SPEECH, kind="audio/mpeg")}


def is_busy_once(then: Callable[..., Any] = every_route) -> Callable[..., Any]:
    """The first request gets 503 and Retry-After of a second, all others an answer."""
    refused: list[Seen] = []

    async def behaviour(
        seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if refused:
            await then(seen, reader, writer)
            return
        refused.append(seen)
        head = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 2\r\n\r\n{}"
        writer.write(head)
        await writer.drain()

    return behaviour
