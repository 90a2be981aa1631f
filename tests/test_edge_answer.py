"""One answer to one client, when the client does not take all of it."""

import asyncio
from typing import Any

import pytest

from gateway.edge.answer import Answer
from gateway.edge.dialects import Dialect
from gateway.edge.refusals import refuse


class Client:
    """Takes what it is sent until it is told to stall."""

    def __init__(self) -> None:
        self.taken = b""
        self.is_stalled = False

    async def send(self, message: dict[str, Any]) -> None:
        """As an ASGI server does: waits while the client does not read."""
        if self.is_stalled:
            await asyncio.Event().wait()
        self.taken += message.get("body", b"")


async def test_a_chunk_that_was_not_taken_is_no_part_of_the_answer() -> None:
    client = Client()
    answer = Answer(client.send, Dialect.OPENAI, "id")
    await answer.start(200, [(b"content-type", b"text/event-stream")])
    await answer.write(b"data: half")
    client.is_stalled = True
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await answer.write(b" and half\n\n")
    client.is_stalled = False
    assert answer.bytes_out == len(b"data: half")
    await answer.fail(refuse("model_switching", "over."))
    assert client.taken.startswith(b'data: half\n\ndata: {"error"')
