"""A gateway that answers as told, for pages in a browser that call it from another origin."""

import json
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOLD_SECONDS = 20.0


@dataclass(frozen=True)
class Stream:
    """An answer in pieces; held open after them, it ends only when the client leaves."""

    pieces: tuple[str, ...]
    is_held: bool = False
    is_cut: bool = False
    ending: str = "stop"
    model: str = ""


@dataclass(frozen=True)
class Refusal:
    """An error in OpenAI's shape."""

    status: int
    code: str
    words: str = "SlotServe: no."
    retry_after: int = 0


@dataclass
class FakeGateway:
    """What it will answer, in order, and what it was asked."""

    url: str = ""
    script: list[Stream | Refusal] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    left: threading.Event = field(default_factory=threading.Event)

    def next_answer(self) -> Stream | Refusal:
        """The next of the script, then always the same."""
        return self.script.pop(0) if self.script else Stream(("Hello", " there."))


class _Handler(BaseHTTPRequestHandler):
    fake: FakeGateway

    def do_OPTIONS(self) -> None:
        """Let every page in."""
        self._head(204, "text/plain")
        self.end_headers()

    def do_POST(self) -> None:
        """Note what is asked and answer as told."""
        body = self.rfile.read(int(self.headers["content-length"]))
        self.fake.bodies.append(json.loads(body))
        self.fake.paths.append(self.path)
        self.fake.keys.append(self.headers["authorization"])
        answer = self.fake.next_answer()
        if isinstance(answer, Refusal):
            self._refuse(answer)
        else:
            self._stream(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Say nothing."""

    def _head(self, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("access-control-allow-origin", "*")
        self.send_header("access-control-allow-headers", "authorization, content-type")
        self.send_header("access-control-expose-headers", "retry-after")

    def _refuse(self, answer: Refusal) -> None:
        self._head(answer.status, "application/json")
        if answer.retry_after:
            self.send_header("retry-after", str(answer.retry_after))
        self.end_headers()
        error = {"message": answer.words, "code": answer.code, "type": "error", "param": None}
        self.wfile.write(json.dumps({"error": error}).encode())

    def _stream(self, answer: Stream) -> None:
        self._head(200, "text/event-stream")
        self.end_headers()
        for piece in answer.pieces:
            choice = {"index": 0, "delta": {"content": piece}}
            self._event({"choices": [choice], "model": answer.model})
        if answer.is_held:
            readable, _, _ = select.select([self.connection], [], [], HOLD_SECONDS)
            if readable and not self.connection.recv(1):
                self.fake.left.set()
            return
        if answer.is_cut:
            return
        last = {"index": 0, "delta": {}, "finish_reason": answer.ending}
        self._event({"choices": [last]})
        self._event({"choices": [], "usage": {"completion_tokens": 42}})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, value: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        self.wfile.flush()


@contextmanager
def fake_gateway() -> Iterator[FakeGateway]:
    """One on a port of its own."""
    fake = FakeGateway()
    handler = type("Handler", (_Handler,), {"fake": fake})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    fake.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="fake-gateway")
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
