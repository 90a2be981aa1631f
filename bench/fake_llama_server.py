"""A stand-in for llama-server that is ready at once: takes its flags and its key, knows no model.

Answers /health to all and everything else to those with the key. bench/latency.py and
tests/test_broker.py start it through a wrapper that SLOTSERVE_LLAMA_SERVER names.
"""

import argparse
import os
import shlex
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        """Empty JSON, or 401."""
        key = f"Bearer {os.environ.get('LLAMA_API_KEY')}"
        is_known = self.path == "/health" or self.headers.get("Authorization") == key
        self.send_response(200 if is_known else 401)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Nothing: the health probe asks often."""


def write_wrapper(path: Path, starts: Path | None = None) -> Path:
    """A program at `path` that becomes this server. It first notes in the file `starts` when it
    was started: the moment in seconds since 1970, and the alias."""
    server = shlex.join([sys.executable, "-S", "-E", str(Path(__file__).resolve())])
    note = f'echo "$EPOCHREALTIME $*" >> {shlex.quote(str(starts))}\n' if starts else ""
    path.write_text(f'#!/usr/bin/env bash\n{note}exec {server} "$@"\n')
    path.chmod(0o755)
    return path


def main() -> None:
    """Listen until TERM."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    address, _ = parser.parse_known_args()
    ThreadingHTTPServer((address.host, address.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
