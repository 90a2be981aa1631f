"""A model server with a WebSocket that behaves and misbehaves, over a real socket."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

Behaviour = Callable[[ServerConnection], Awaitable[None]]


@dataclass
class FakeSocket:
    """What the model server has seen of its sessions."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    ended: list[int | None] = field(default_factory=list)  # close codes; None: cut off
    open: set[ServerConnection] = field(default_factory=set)
    declines_with: int | None = None
    sent: int = 0  # messages of `floods`


async def echoes(connection: ServerConnection) -> None:
    """Each message, as it came."""
    async for message in connection:
        await connection.send(message)


async def hears(connection: ServerConnection) -> None:
    """Reads and says nothing."""
    async for _ in connection:
        pass


async def leaves(connection: ServerConnection) -> None:
    """One message, then a close of its own."""
    await connection.send("bye")
    await connection.close(4321, "had enough")


async def dies(connection: ServerConnection) -> None:
    """One message, then the connection is cut."""
    await connection.send("bye")
    connection.transport.abort()


@contextlib.asynccontextmanager
async def running(
    behaviour: Behaviour, *, protocols: Sequence[str] = (), **options: int | None
) -> AsyncIterator[FakeSocket]:
    """A server with this behaviour on a port of its own."""
    fake = FakeSocket()

    async def handle(connection: ServerConnection) -> None:
        fake.open.add(connection)
        try:
            await behaviour(connection)
        finally:
            await connection.wait_closed()
            fake.open.discard(connection)
            fake.ended.append(connection.close_code)

    def look(connection: ServerConnection, request: Request) -> Response | None:
        fake.requests.append(request)
        if fake.declines_with is not None:
            return connection.respond(fake.declines_with, "no")
        return None

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
