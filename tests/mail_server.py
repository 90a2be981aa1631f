"""A mail server on a real socket that behaves badly where it is told to."""

import contextlib
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

ANSWERS = {"EHLO": "250 here", "HELO": "250 here", "MAIL": "250 ok", "RCPT": "250 ok"}
ANSWERS |= {"DATA": "354 go on", ".": "250 taken", "RSET": "250 ok", "QUIT": "221 bye"}
HANG, DROP, DRIP = "hang", "drop", "drip"


@dataclass
class MailServer:
    """What it was asked and given. `bad`: command -> another answer, or hang, drop or drip."""

    bad: dict[str, str] = field(default_factory=dict)
    mails: list[str] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    is_over: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def mail_server(**bad: str) -> Iterator[MailServer]:
    """One that listens on loopback; DOT stands for the end of a mail, HELLO for the greeting."""
    known = MailServer(bad={"." if name == "DOT" else name: word for name, word in bad.items()})
    with _Server(("127.0.0.1", 0), _Talk) as server:
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
    known: MailServer


class _Talk(socketserver.StreamRequestHandler):
    """One connection."""

    server: _Server

    def handle(self) -> None:
        self.server.known.connections += 1
        with contextlib.suppress(OSError, _DroppedError):
            self._say("HELLO", "220 here")
            while line := self.rfile.readline():
                self._obey(line[:4].decode().strip().upper())

    def _obey(self, verb: str) -> None:
        self._say(verb, ANSWERS.get(verb, "500 what?"))
        if verb == "DATA" and "DATA" not in self.server.known.bad:
            self._take()
        if verb == "QUIT":
            raise _DroppedError

    def _take(self) -> None:
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.decode())
        if line:
            self.server.known.mails.append("".join(lines))
            self._say(".", ANSWERS["."])

    def _say(self, verb: str, words: str) -> None:
        known = self.server.known
        how = known.bad.get(verb, words)
        if how == HANG:
            known.is_over.wait(60)
        if how in (HANG, DROP):
            raise _DroppedError
        while how == DRIP and not known.is_over.wait(0.02):
            self.wfile.write(b"250-still here\r\n")
            self.wfile.flush()
        self.wfile.write(f"{how}\r\n".encode())


class _DroppedError(Exception):
    """The connection is no more."""
