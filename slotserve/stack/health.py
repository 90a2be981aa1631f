"""Waiting until parts answer."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import httpx

from slotserve.stack.errors import StartError

POLL_SECONDS = 0.05
ANSWER_SECONDS = 60.0
PROBE_SECONDS = 5.0


async def wait_for_valkey(socket: Path) -> None:
    """Return when Valkey answers a PING on its socket; StartError when it does not."""
    await _until(partial(_pongs, socket), f"Valkey has not answered on {socket}", "logs/valkey.log")


async def wait_for_pages(urls: dict[str, str]) -> None:
    """Return when each part's address answers 200; StartError naming the one that does not."""
    async with httpx.AsyncClient(trust_env=False, timeout=PROBE_SECONDS) as client:
        waits = [
            _until(partial(_is_well, client, url), f"{name} has not answered at {url}")
            for name, url in urls.items()
        ]
        await asyncio.gather(*waits)


async def _until(
    is_well: Callable[[], Awaitable[bool]], complaint: str, place: str = "its lines"
) -> None:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            while not await is_well():  # noqa: ASYNC110 - what is waited for is another process
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise StartError(f"{complaint}: {place} may say why.") from None


async def _is_well(client: httpx.AsyncClient, url: str) -> bool:
    try:
        return (await client.get(url)).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


async def _pongs(socket: Path) -> bool:
    try:
        reader, writer = await asyncio.open_unix_connection(socket)
    except OSError:
        return False
    try:
        writer.write(b"PING\r\n")
        return await reader.readline() == b"+PONG\r\n"
    except OSError:
        return False
    finally:
        writer.close()
