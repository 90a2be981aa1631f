"""A server of somebody's own, told by flags of its own where to listen: a trainer, or any command.

`--key-file FILE` or the variable API_KEY guards all but /ping; `--stopped FILE` is written at TERM.
`python any_server.py stop --port N --said FILE` asks one to end.
"""

import argparse
import json
import os
import signal
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


def main() -> None:
    """Serve, or ask another to end."""
    words = argparse.ArgumentParser()
    words.add_argument("what", choices=["serve", "stop"])
    words.add_argument("--host", default="127.0.0.1")
    words.add_argument("--port", type=int, required=True)
    words.add_argument("--key-file")
    words.add_argument("--base")
    words.add_argument("--stopped")
    words.add_argument("--said")
    asked = words.parse_args()
    if asked.what == "stop":
        Path(asked.said).write_text(os.environ.get("WORD", ""))
        key = os.environ.get("API_KEY", "")
        headers = {"Authorization": f"Bearer {key}"}
        place = f"http://{asked.host}:{asked.port}/end"
        urllib.request.urlopen(urllib.request.Request(place, headers=headers, method="POST"))
        return
    key = Path(asked.key_file).read_text() if asked.key_file else os.environ.get("API_KEY", "")
    signal.signal(signal.SIGTERM, lambda *_: _stopped(asked.stopped))
    ThreadingHTTPServer((asked.host, asked.port), handler(key, asked)).serve_forever()


def handler(key: str, asked: argparse.Namespace) -> type[BaseHTTPRequestHandler]:
    """What answers each connection."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path != "/ping" and key and self.headers["Authorization"] != f"Bearer {key}":
                self._say(401, {})
            else:
                self._say(200, {"path": self.path, "base": asked.base})

        def do_POST(self) -> None:
            self.do_GET()
            if self.path == "/end":
                os._exit(0)

        def do_DELETE(self) -> None:
            self.do_GET()

        def log_message(self, *args: Any) -> None:
            sys.stdout.write(f"{args}\n")

        def _say(self, status: int, told: dict[str, Any]) -> None:
            body = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _stopped(file: str | None) -> None:
    if file:
        Path(file).write_text("by TERM")
    os._exit(0)


if __name__ == "__main__":
    main()
