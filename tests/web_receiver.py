"""A receiver of webhooks and pushes on a real socket that behaves badly where it is told to."""

import contextlib
import socketserver
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

HANG, DRIP, HUGE, DROP, NONSENSE = "hang", "drip", "huge", "drop", "nonsense"


@dataclass
class Receiver:
    """What it was sent, and what it answers: a status, or one of the words above."""

    answer: int | str = 200
    headers: dict[str, str] = field(default_factory=dict)
    posts: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    port: int = 0
    is_over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}/hook?x=1"


@contextlib.contextmanager
def receiver(
    answer: int | str = 200, *, tls: ssl.SSLContext | None = None, **headers: str
) -> Iterator[Receiver]:
    """One that listens on loopback, with `tls` by TLS."""
    known = Receiver(answer, headers)
    with _Server(("127.0.0.1", 0), _Talk) as server:
        server.tls = tls
        server.known, known.port = known, server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield known
        finally:
            known.is_over.set()
            server.shutdown()
            thread.join()


class _Server(socketserver.ThreadingTCPServer):
    known: Receiver
    tls: ssl.SSLContext | None = None

    def finish_request(self, request: Any, client_address: Any) -> None:
        """In the connection's thread, so that nobody waits for a handshake."""
        if self.tls is None:
            super().finish_request(request, client_address)
            return
        with contextlib.suppress(OSError), self.tls.wrap_socket(request, server_side=True) as end:
            super().finish_request(end, client_address)


class _Talk(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        known = self.server.known
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        known.posts.append(({name.lower(): text for name, text in self.headers.items()}, body))
        known.paths.append(self.path)
        with contextlib.suppress(OSError):
            self._answer(known)

    def _answer(self, known: Receiver) -> None:
        if isinstance(known.answer, int):
            self.send_response(known.answer)
            for name, text in known.headers.items():
                self.send_header(name, text)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"well")
        elif known.answer == HANG:
            known.is_over.wait(60)
        elif known.answer == NONSENSE:
            self.wfile.write(b"\x00\xff" * 50 + b"\r\n\r\n")
        elif known.answer in {DRIP, HUGE}:
            self._never_end(known)

    def _never_end(self, known: Receiver) -> None:
        if known.answer == HUGE:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not known.is_over.wait(0.02 if known.answer == DRIP else 0):
            is_drip = known.answer == DRIP
            self.wfile.write(b"HTTP/1.1 100 wait\r\n\r\n" if is_drip else b"x" * 65536)

    def log_message(self, *_arguments: object) -> None:
        """Nothing."""
