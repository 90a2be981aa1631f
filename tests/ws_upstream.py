"""A model server with a WebSocket that behaves and misbehaves, over a real socket."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

Behaviour = Callable[[ServerConnection, "FakeSocket"], Awaitable[None]]


@dataclass
class FakeSocket:
    """What the model server has seen of its sessions."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    ended: list[int | None] = field(default_factory=list)  # close codes; None: cut off
    open: set[ServerConnection] = field(default_factory=set)
    declines_with: int | None = None
    redirects_to: str = ""
    message: bytes = b"x" * 1000  # of `floods`
    sent: int = 0  # messages of it
    heard: int = 0  # bytes
    release: asyncio.Event = field(default_factory=asyncio.Event)  # for `pauses`


async def echoes(connection: ServerConnection, _: FakeSocket) -> None:
    """Each message, as it came."""
    async for message in connection:
        await connection.send(message)


async def hears(connection: ServerConnection, fake: FakeSocket) -> None:
    """Reads and says nothing."""
    async for message in connection:
        fake.heard += len(message)


async def leaves(connection: ServerConnection, _: FakeSocket) -> None:
    """One message, then a close of its own."""
    await connection.send("bye")
    await connection.close(4321, "had enough")


async def dies(connection: ServerConnection, _: FakeSocket) -> None:
    """One message, then the connection is cut."""
    await connection.send("bye")
    connection.transport.abort()


async def floods(connection: ServerConnection, fake: FakeSocket) -> None:
    """Sends as fast as it may, without an end."""
    while True:
        await connection.send(fake.message)
        fake.sent += 1


async def pauses(connection: ServerConnection, fake: FakeSocket) -> None:
    """Reads nothing until it is told to."""
    await fake.release.wait()
    await hears(connection, fake)


@contextlib.asynccontextmanager
async def running(
    behaviour: Behaviour, *, protocols: Sequence[str] = (), **options: int | None
) -> AsyncIterator[FakeSocket]:
    """A server with this behaviour on a port of its own."""
    fake = FakeSocket()

    async def handle(connection: ServerConnection) -> None:
        fake.open.add(connection)
        try:
            with contextlib.suppress(ConnectionClosed):
                await behaviour(connection, fake)
        finally:
            await connection.wait_closed()
            fake.open.discard(connection)
            fake.ended.append(connection.close_code)

    def look(connection: ServerConnection, request: Request) -> Response | None:
        fake.requests.append(request)
        if fake.declines_with is None:
            return None
        response = connection.respond(fake.declines_with, "no")
        if fake.redirects_to:
            response.headers["Location"] = fake.redirects_to
        return response

    known = [Subprotocol(each) for each in protocols] or None
    async with serve(
        handle,
        "127.0.0.1",
        0,
        process_request=look,
        subprotocols=known,
        select_subprotocol=None if known else (lambda *_: None),
        compression=None,
        max_size=None,
        **options,  # type: ignore[arg-type]
    ) as server:
        fake.url = f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        yield fake
