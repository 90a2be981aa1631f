"""A stand-in for llama-server that notes each request and how it ended, in a file.

While it lives it holds a lock for its lane, next to that file: when somebody holds it already, two
servers of one lane live at once, which goes into a file of its own.
Takes llama-server's flags and its key. A chat asks for `tokens` pieces, `pace` seconds apart.
"""

import argparse
import asyncio
import fcntl
import json
import os
import shlex
import sys
import time
from pathlib import Path

from aiohttp import web

LOAD_SECONDS = 0.6
SLOTS = 4
LANE = os.environ.get("SLOTSERVE_LANE", "")
_BODY_BYTES = 64 * 2**20


def write_wrapper(path: Path, log: Path) -> Path:
    """A program at `path` that becomes this server and notes into `log`."""
    command = shlex.join([sys.executable, str(Path(__file__).resolve()), "--log", str(log)])
    path.write_text(f'#!/usr/bin/env bash\nexec {command} "$@"\n')
    path.chmod(0o755)
    return path


def doubles_of(log: Path) -> Path:
    """Where servers note that another one of their lane lived when they began."""
    return log.with_suffix(".doubles")


def hold_lane(log: Path) -> int:
    """The lane's lock, held until this process ends however it ends."""
    handle = os.open(log.with_suffix(f".lane-{LANE}"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        other = os.pread(handle, 20, 0).decode()
        with doubles_of(log).open("a") as doubles:
            doubles.write(f"lane {LANE}: process {os.getpid()} began while {other} lived\n")
        return handle
    os.ftruncate(handle, 0)
    os.pwrite(handle, str(os.getpid()).encode(), 0)
    return handle


class ModelServer:
    """One server process."""

    def __init__(self, log: Path, alias: str, port: int) -> None:
        self._log = log.open("a", buffering=1)
        self._alias = alias
        self._port = port
        self._key = f"Bearer {os.environ.get('LLAMA_API_KEY')}"
        self._ready_at = time.monotonic() + LOAD_SECONDS

    async def health(self, _: web.Request) -> web.Response:
        """503 while it loads."""
        is_ready = time.monotonic() >= self._ready_at
        return web.json_response({"status": "ok"}, status=200 if is_ready else 503)

    async def props(self, request: web.Request) -> web.Response:
        """Its slots, for those with the key."""
        if request.headers.get("Authorization") != self._key:
            return web.json_response({"error": "key"}, status=401)
        settings = {"n_ctx": 4096}
        told = {"total_slots": SLOTS, "default_generation_settings": settings, "modalities": {}}
        return web.json_response(told)

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Answer in pieces or whole; note the end even if the caller leaves."""
        if request.headers.get("Authorization") != self._key:
            return web.json_response({"error": "key"}, status=401)
        began = time.time()
        wish = await request.json()
        how = "cut"
        try:
            answer = await self._answer(request, wish)
            how = "whole"
            return answer
        finally:
            fields = {"id": wish["id"], "user": wish["user"], "alias": self._alias, "lane": LANE}
            times = {"port": self._port, "at": began, "end": time.time()}
            self._log.write(json.dumps({**fields, **times, "how": how}) + "\n")

    async def _answer(self, request: web.Request, wish: dict[str, float]) -> web.StreamResponse:
        tokens, pace = int(wish["tokens"]), float(wish["pace"])
        usage = {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": 5 + tokens}
        if not wish.get("stream"):
            await asyncio.sleep(tokens * pace)
            return web.json_response({"id": wish["id"], "usage": usage})
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        for number in range(tokens):
            await answer.write(b'data: {"n": %d}\n\n' % number)
            await asyncio.sleep(pace)
        await answer.write(b"data: " + json.dumps({"usage": usage}).encode() + b"\n\n")
        await answer.write(b"data: [DONE]\n\n")
        await answer.write_eof()
        return answer


def main() -> None:
    """Listen until TERM."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--version", action="version", version="version: 1 (stand-in)")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--alias")
    given, _ = parser.parse_known_args()
    hold_lane(given.log)
    server = ModelServer(given.log, given.alias, given.port)
    app = web.Application(client_max_size=_BODY_BYTES)
    app.router.add_get("/health", server.health)
    app.router.add_get("/props", server.props)
    app.router.add_post("/v1/chat/completions", server.chat)
    web.run_app(
        app,
        host=given.host,
        port=given.port,
        print=None,
        handler_cancellation=True,
        access_log=None,
    )


if __name__ == "__main__":
    main()
