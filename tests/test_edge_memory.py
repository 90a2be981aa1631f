"""A process of the gateway passes forms of a hundred megabytes on without holding them."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import psutil
import pytest

from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import OWNER, bearer, lane
from tests.edge_harness import upstream as upstream_at
from tests.edge_processes import edge_process, publishing

pytestmark = [pytest.mark.valkey, pytest.mark.process]
PIECES, PIECE = 1600, b"RIFF\r\n--x\r\n123\n" * 4096  # 100 MB
START = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
END = b'\r\n--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nqwen\r\n--x--\r\n'
KIND = {"content-type": "multipart/form-data; boundary=x-y"}


async def _form() -> AsyncIterator[bytes]:
    yield START.replace(b"--x", b"--x-y")
    for _ in range(PIECES):
        yield PIECE
    yield END.replace(b"--x", b"--x-y")


async def _counts(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A model server that says how many bytes came, and keeps none."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    left = length = int(head.partition("content-length: ")[2].split("\r\n")[0])
    while left > 0 and (piece := await reader.read(262_144)):
        left -= len(piece)
    writer.write(upstreams.response(b'{"bytes": %d}' % (length - left)))
    await writer.drain()
    writer.close()


async def test_a_large_form_leaves_the_memory_as_it_was(valkey_server: ValkeyServer) -> None:
    settings = {"SLOTSERVE_MAX_BODY_BYTES": str(200 * 2**20)}
    with edge_process(valkey_server.url, settings=settings) as edge:
        async with (
            publishing(valkey_server.url) as publisher,
            await asyncio.start_server(_counts, "127.0.0.1", 0) as server,
            httpx.AsyncClient(base_url=edge.url, timeout=60) as client,
        ):
            port = server.sockets[0].getsockname()[1]
            await publisher.publish(lane(upstream=upstream_at(f"http://127.0.0.1:{port}")))
            await edge.is_ready()
            process = psutil.Process(edge.pid)
            before, most = process.memory_info().rss, 0

            async def watch() -> None:
                nonlocal most
                while True:
                    most = max(most, process.memory_info().rss)
                    await asyncio.sleep(0.01)

            watching = asyncio.create_task(watch())
            answer = await client.post(
                "/v1/audio/transcriptions", content=_form(), headers=bearer(OWNER) | KIND
            )
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            assert answer.json() == {"bytes": sum([len(piece) async for piece in _form()])}
            assert most - before < 25 * 2**20
