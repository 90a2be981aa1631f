"""A model server that costs next to nothing: canned answers over raw sockets.

`python -m bench.edge_speed.upstream PORT`. A body with `"stream": true` is answered by CHUNKS
events at 100 a second, the first one at once; any other by one JSON answer when it is complete.
"""

import asyncio
import json
import sys
from typing import cast

import uvloop

CHUNKS = 100
TICK_SECONDS = 0.001
TICKS_BETWEEN = 10  # 100 chunks a second for each stream
_USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
_MESSAGE = {"role": "assistant", "content": "Hello there, this is an answer of usual length."}
_CHOICE = {"index": 0, "message": _MESSAGE, "finish_reason": "stop"}
_BODY = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "qwen",
        "choices": [_CHOICE],
        "usage": _USAGE,
    }
).encode()
ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(_BODY)
    + _BODY
)
HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
    b"access-control-allow-origin: *\r\n\r\n"
)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _event(content: str, **more: object) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": None}
    data = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "qwen"}
    return b"data: " + json.dumps({**data, "choices": [choice], **more}).encode() + b"\n\n"


EVENT = _chunk(_event("word "))
LAST = _chunk(_event("", usage=_USAGE)) + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


class ModelServer(asyncio.Protocol):
    """One connection."""

    streams: tuple[set["ModelServer"], ...] = tuple(set() for _ in range(TICKS_BETWEEN))
    turn = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Nothing has come yet."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class
        self.head = bytearray()
        self.body_left = -1  # bytes; -1: the head is not complete
        self.is_stream = False
        self.is_read = False  # the beginning of the body
        self.is_chunked = False
        self.sent = 0
        self.group: set[ModelServer] = set()

    def connection_lost(self, exc: Exception | None) -> None:
        """It streams no more."""
        self.group.discard(self)

    def data_received(self, data: bytes) -> None:
        """Read a request; answer it when it is complete."""
        if self.body_left < 0:
            self.head += data
            head, gap, body = bytes(self.head).partition(b"\r\n\r\n")
            if not gap:
                return
            self._read_head(head.lower())
            data = body
        if data and not self.is_read:
            self.is_read = True
            self.is_stream = b'"stream": true' in data[:200]
        if self.is_chunked:
            self.body_left = 0 if data.endswith(b"0\r\n\r\n") else 1
        else:
            self.body_left -= len(data)
        if self.body_left == 0:
            self._answer()

    def _read_head(self, head: bytes) -> None:
        self.is_chunked = b"transfer-encoding: chunked" in head
        length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
        self.body_left = int(length) if length else 0
        self.is_stream = self.is_read = False

    def _answer(self) -> None:
        self.head.clear()
        self.body_left = -1
        if not self.is_stream:
            self.transport.write(ANSWER)
            return
        self.transport.write(HEAD + EVENT)
        self.sent = 1
        self.group = self.streams[ModelServer.turn]
        self.group.add(self)

    @classmethod
    async def tick_for_ever(cls) -> None:
        """Each stream gets a chunk at each tenth tick; a late tick is made up for."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due += TICK_SECONDS
            wait = due - loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            cls.turn = (cls.turn + 1) % TICKS_BETWEEN
            for stream in tuple(cls.streams[cls.turn]):
                stream.sent += 1
                is_last = stream.sent >= CHUNKS
                stream.transport.write(LAST if is_last else EVENT)
                if is_last:
                    stream.group.discard(stream)


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(ModelServer, "127.0.0.1", port)
    async with server:
        await ModelServer.tick_for_ever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
