"""Bare connections to an edge: any bytes in, what comes out."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from tests.edge_harness import Running


@contextlib.asynccontextmanager
async def connected(
    edge: Running,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to the edge; cut off afterwards."""
    address = urlsplit(edge.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def head_of(reader: asyncio.StreamReader) -> bytes:
    """One head."""
    async with asyncio.timeout(30):
        return await reader.readuntil(b"\r\n\r\n")


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """What comes until the edge closes; nothing where it cuts the connection off."""
    async with asyncio.timeout(30):
        with contextlib.suppress(ConnectionError):
            return await reader.read()
    return b""
