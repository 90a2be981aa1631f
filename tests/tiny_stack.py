"""bin/up's supervisor with parts that start in a blink: a real Valkey, pages that say yes.

`python -m tests.tiny_stack` takes the flags of `python -m slotserve.stack`.
"""

import json
import os
import sys
from dataclasses import dataclass

from slotserve.stack.__main__ import main
from slotserve.stack.parts import Product
from slotserve.stack.supervisor import Part

PAGE = """
import http.server, sys
class Yes(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *words):
        pass
print("listening", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Yes).serve_forever()
"""
SLEEP = "import time; time.sleep(600)"
REPORT = {"administrator": "admin", "password": "pw-made-now", "token": "ss_demo", "notes": []}
SET_UP = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.argv[2])"
STOP = """
import os, pathlib, time
folder = pathlib.Path(os.environ["SLOTSERVE_DATA"])
mark, report = folder / "stopped", folder / "first-start.json"
while os.environ.get("TINY_STOP") and not (mark.exists() or report.exists()):
    time.sleep(0.02)
mark.touch()
"""


@dataclass(frozen=True, slots=True)
class TinyProduct(Product):
    """The product's shape without the product."""

    def setup(self) -> Part:
        """Reports a first start."""
        return self._python("setup", "-c", SET_UP, str(self.report), json.dumps(REPORT))

    def stop_servers(self) -> Part:
        """Leaves a mark; with TINY_STOP the first one only once setting up is over."""
        return self._python("stop", "-c", STOP)

    def web(self) -> Part:
        """Says yes to everything, unless TINY_WEB is set: then it never answers."""
        page = SLEEP if os.environ.get("TINY_WEB") else PAGE
        return self._python("web", "-c", page, str(self.options.web_port))

    def edge(self) -> Part:
        """Says yes to everything."""
        return self._python("edge", "-c", PAGE, str(self.options.gateway_port))

    def worker(self) -> Part:
        """Does nothing."""
        return self._python("worker", "-c", SLEEP)

    def beat(self) -> Part:
        """Does nothing."""
        return self._python("beat", "-c", SLEEP)


if __name__ == "__main__":
    sys.exit(main(TinyProduct))
