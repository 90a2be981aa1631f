"""Edges as processes of their own, and clients that count each request that is lost."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import httpx
import psutil
import redis.asyncio as redis

from tests.edge_harness import OWNER, Publisher, bearer, http_client, key_of
from tests.ports import free_port
from wire.edges import EDGES, EdgeReport, decode_report

ROOT = Path(__file__).resolve().parent.parent
CHAT = "/v1/chat/completions"
BODY = json.dumps({"messages": [{"role": "user", "content": "Hi"}]}).encode()
START_SECONDS = 30.0  # of processes on a busy machine
_AS_SYSTEMD = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


async def soon(is_so: Callable[[], object], seconds: float = START_SECONDS) -> None:
    """Wait until it is so, or fail."""
    async with asyncio.timeout(seconds):
        while not is_so():
            await asyncio.sleep(0.01)


@dataclass
class Process:
    """An edge, or the parent of several."""

    popen: "subprocess.Popen[bytes]"
    port: int
    edge_id: str
    log: IO[bytes]

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Its number; the parent's, where it has workers."""
        return self.popen.pid

    def said(self) -> str:
        """What it has written so far."""
        self.log.seek(0)
        return self.log.read().decode()

    def workers(self) -> set[int]:
        """Its children that live."""
        try:
            found = psutil.Process(self.pid).children()
            return {each.pid for each in found if each.status() != psutil.STATUS_ZOMBIE}
        except psutil.NoSuchProcess:
            return set()

    async def ended(self, seconds: float = 20.0) -> int:
        """Wait for its end; the exit status."""
        await soon(lambda: self.popen.poll() is not None, seconds)
        return int(self.popen.returncode)

    async def is_ready(self) -> None:
        """Wait until it answers with a table."""
        async with asyncio.timeout(START_SECONDS), http_client() as client:
            while not await _is_ok(client, f"{self.url}/ready"):
                assert self.popen.poll() is None, self.said()
                await asyncio.sleep(0.02)


async def _is_ok(client: httpx.AsyncClient, url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return (await client.get(url)).status_code == 200
    return False


@contextlib.contextmanager
def edge_process(
    redis_url: str,
    *flags: str,
    edge_id: str = "edge",
    held: socket.socket | None = None,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Process]:
    """`python -m gateway.edge` on a port of its own, or on a socket that is handed to it.

    Killed afterwards, with its workers.
    """
    port = held.getsockname()[1] if held is not None else free_port()
    argv = [sys.executable, "-m", "gateway.edge", *flags]
    argv += [] if held is not None else ["--port", str(port)]
    fds = () if held is None else (held.fileno(),)
    if held is not None:
        argv = [sys.executable, "-c", _AS_SYSTEMD, str(held.fileno()), *argv]
    given = {"SLOTSERVE_TABLE_KEYS": "k" * 40, "REDIS_URL": redis_url, "SLOTSERVE_EDGE_ID": edge_id}
    with tempfile.TemporaryFile() as log, tempfile.TemporaryDirectory() as usage:
        given["SLOTSERVE_USAGE_DIR"] = usage  # what one test leaves is no other's
        environment = os.environ | given | dict(settings or {})
        popen = subprocess.Popen(argv, cwd=ROOT, env=environment, stderr=log, pass_fds=fds)
        process = Process(popen, port, edge_id, log)
        try:
            yield process
        finally:
            kill(process)


def kill(process: Process) -> None:
    """End it and its workers at once, those that were stopped too."""
    workers = process.workers()
    process.popen.kill()
    process.popen.wait()
    for pid in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def is_divided(edge: Process) -> bool:
    """Whether a busy machine took more than 50 ms for an answer: then numbers need not hold."""
    return "does not answer in time" in edge.said()


@contextlib.asynccontextmanager
async def publishing(redis_url: str) -> AsyncIterator[Publisher]:
    """A publisher on this Valkey."""
    client = redis.Redis.from_url(redis_url)
    try:
        yield Publisher(client)
    finally:
        await client.aclose()


async def reports(publisher: Publisher) -> dict[str, EdgeReport]:
    """What edges say of themselves, by edge id."""
    raw = await publisher.client.hgetall(EDGES)
    decoded = (decode_report(str(name, "ascii"), payload) for name, payload in raw.items())  # type: ignore[arg-type]
    return {report.edge_id: report for report in decoded if report is not None}


@dataclass
class Answered:
    """An answer; whole when its body has come."""

    status: int
    headers: dict[str, str]
    body: bytes = b""


class Kept:
    """A kept-alive connection that sends its next request without looking: what is lost shows."""

    def __init__(self, port: int, owner: int = OWNER) -> None:
        self._port = port
        self._key = key_of(owner)
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        """Connect, if it is not."""
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    def close(self) -> None:
        """Let go."""
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None

    async def send(self, path: str = CHAT) -> None:
        """One request."""
        await self.open()
        assert self._writer is not None
        method, body = ("POST", BODY) if path == CHAT else ("GET", b"")
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self._key}\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await self._writer.drain()

    async def receive_head(self) -> Answered:
        """The first part of its answer."""
        assert self._reader is not None
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        lines = (line.partition(": ") for line in head[1:] if line)
        headers = {name.lower(): value for name, _, value in lines}
        return Answered(int(head[0].split()[1]), headers)

    async def receive(self, head: Answered | None = None) -> Answered:
        """Its answer, which has a length. Closes when the server says that it will."""
        assert self._reader is not None
        answer = head or await self.receive_head()
        answer.body = await self._reader.readexactly(int(answer.headers["content-length"]))
        if answer.headers.get("connection") == "close":
            self.close()
        return answer

    async def ask(self, path: str = CHAT) -> Answered:
        """One request and its answer."""
        await self.send(path)
        return await self.receive()

    async def is_closed(self, seconds: float) -> bool:
        """Whether the server closes within this time, without a word."""
        assert self._reader is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._reader.read(1) == b""
        return False


@dataclass
class Load:
    """What became of the requests of several kept-alive connections."""

    served: int = 0
    failed: list[str] = field(default_factory=list)

    async def more(self, count: int) -> None:
        """Wait until so many more have been served."""
        wanted = self.served + count
        await soon(lambda: self.served >= wanted)


@contextlib.asynccontextmanager
async def load(port: int, connections: int = 16) -> AsyncIterator[Load]:
    """Ask without a pause on this many kept-alive connections."""
    result = Load()
    is_over = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for _ in range(connections):
            group.create_task(_ask_on(Kept(port), result, is_over))
        try:
            yield result
        finally:
            is_over.set()


async def _ask_on(kept: Kept, result: Load, is_over: asyncio.Event) -> None:
    try:
        while not is_over.is_set():
            try:
                async with asyncio.timeout(START_SECONDS):
                    answer = await kept.ask()
            except (OSError, EOFError) as error:
                result.failed.append(repr(error))
                kept.close()
                continue
            if answer.status == 200:
                result.served += 1
            else:
                result.failed.append(answer.body.decode())
    finally:
        kept.close()


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def chat(process: Process, owner: int = OWNER) -> httpx.Response:
    """One request on a connection of its own."""
    async with http_client(timeout=60) as client:
        return await client.post(f"{process.url}{CHAT}", content=BODY, headers=bearer(owner))
