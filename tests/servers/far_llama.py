"""A stand-in for llama-server on a machine of its own: says which model it is, loads as long as
its name says ("slow-…": three seconds), streams as long as it is asked to.

`--starts FOLDER` is given by the wrapper that SLOTSERVE_LLAMA_SERVER names: a line for each server
that began on a lane, or DOUBLE when another still ran there.
"""

import argparse
import fcntl
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SLOW_SECONDS = 3.0
SLOTS = 16


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    alias, ready_at = "", 0.0

    def do_GET(self) -> None:
        """/health for all, the rest for those with the key."""
        if self.path == "/health":
            self._answer(200 if time.monotonic() >= self.ready_at else 503, {})
        else:
            settings = {"n_ctx": 4096}
            props = {"total_slots": SLOTS, "default_generation_settings": settings}
            self._answer(200 if self._is_known() else 401, props)

    def do_POST(self) -> None:
        """Says who answers; with `pieces` as a stream, a tenth of a second apart."""
        wish = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        told = {"alias": self.alias, "pid": os.getpid(), "lane": os.environ["SLOTSERVE_LANE"]}
        if not self._is_known():
            self._answer(401, {})
        elif not wish.get("stream"):
            self._answer(200, told)
        else:
            self._stream(told, int(wish["pieces"]))

    def _stream(self, told: dict[str, object], pieces: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for _ in range(pieces):
            self.wfile.write(b"data: " + json.dumps(told).encode() + b"\n\n")
            self.wfile.flush()
            time.sleep(0.1)
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _is_known(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {os.environ['LLAMA_API_KEY']}"

    def _answer(self, status: int, said: dict[str, object]) -> None:
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def tell_start(folder: str, alias: str) -> None:
    """The lock is kept until this process ends."""
    path = f"{folder}/starts-{os.environ['SLOTSERVE_LANE']}"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(handle, f"{alias}\n".encode())
    except BlockingIOError:
        os.write(handle, b"DOUBLE\n")


def main() -> None:
    """Listen until TERM."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("--host", "--port", "--alias", "--starts"):
        parser.add_argument(name)
    given, _ = parser.parse_known_args()
    tell_start(given.starts, given.alias)
    Handler.alias = given.alias
    seconds = SLOW_SECONDS if given.alias.startswith("slow-") else 0.0
    Handler.ready_at = time.monotonic() + seconds
    ThreadingHTTPServer((given.host, int(given.port)), Handler).serve_forever()


if __name__ == "__main__":
    main()
