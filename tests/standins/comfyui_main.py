"""A stand-in for ComfyUI's `main.py`: its flags, its queue, its pictures; see the package."""

import argparse
import json
import os
import sys
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

SWITCHES = """
--auto-launch --disable-auto-launch --cuda-malloc --disable-cuda-malloc --force-fp32 --force-fp16
--fp32-unet --bf16-unet --fp16-unet --fp16-vae --fp32-vae --bf16-vae --cpu-vae --force-channels-last
--gpu-only --highvram --normalvram --lowvram --novram --cpu --async-offload --disable-smart-memory
--deterministic --mmap-torch-files --disable-mmap --dont-print-server --quick-test-for-ci
--windows-standalone-build --disable-metadata --disable-all-custom-nodes --disable-api-nodes
--multi-user --log-stdout --enable-compress-response-body --disable-xformers
--use-pytorch-cross-attention --use-sage-attention --use-flash-attention --cache-classic
--cache-none
"""
VALUES = """
--tls-keyfile --tls-certfile --max-upload-size --base-directory --output-directory --temp-directory
--input-directory --models-directory --cuda-device --preview-method --preview-size --cache-lru
--reserve-vram --default-hashing-function --front-end-version --front-end-root --user-directory
--comfy-api-base --database-url
"""


def parser() -> argparse.ArgumentParser:
    """argparse's own, with an optional value where ComfyUI has one."""
    made = argparse.ArgumentParser(prog="main.py")
    made.add_argument("--listen", nargs="?", default="127.0.0.1", const="0.0.0.0,::")
    made.add_argument("--port", type=int, default=8188)
    made.add_argument("--enable-cors-header", nargs="?", const="*")
    made.add_argument("--verbose", nargs="?", default="INFO", const="DEBUG")
    made.add_argument("--extra-model-paths-config", nargs="+", action="append")
    made.add_argument("--whitelist-custom-nodes", nargs="+", default=[])
    made.add_argument("--fast", nargs="*")
    for name in SWITCHES.split():
        made.add_argument(name, action="store_true")
    for name in VALUES.split():
        made.add_argument(name)
    return made


class Handler(BaseHTTPRequestHandler):
    """One connection. A prompt is worked at once: its one picture holds the prompt's words."""

    protocol_version = "HTTP/1.1"
    asked: argparse.Namespace
    history: dict[str, Any] = {}

    def do_GET(self) -> None:
        """What the page and scripts read."""
        where = urlsplit(self.path)
        if where.path == "/system_stats":
            self._say({"system": {"comfyui_version": "0.3.60"}, "devices": [{"type": "cpu"}]})
        elif where.path in ("/queue", "/prompt"):
            self._say({"queue_running": [], "queue_pending": []})
        elif where.path == "/history" or where.path.startswith("/history/"):
            one = where.path.removeprefix("/history").strip("/")
            self._say({k: v for k, v in self.history.items() if one in ("", k)})
        elif where.path == "/view":
            name = Path(parse_qs(where.query)["filename"][0]).name
            self._say_bytes((Path(self.asked.output_directory) / name).read_bytes())
        else:
            self._say({"error": "not found"}, 404)

    def do_POST(self) -> None:
        """A prompt; everything else is not of interest here."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/prompt":
            self._say({"error": "not found"}, 404)
            return
        prompt, picture = uuid.uuid4().hex, f"ComfyUI_{len(self.history):05}_.png"
        (Path(self.asked.output_directory) / picture).write_bytes(body)
        self.history[prompt] = {"outputs": {"9": {"images": [{"filename": picture}]}}}
        self._say({"prompt_id": prompt, "number": len(self.history), "node_errors": {}})

    def log_message(self, *args: Any) -> None:
        """Nothing: aiohttp's access log is off."""

    def _say(self, told: Any, status: int = 200) -> None:
        self._say_bytes(json.dumps(told).encode(), status)

    def _say_bytes(self, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Read the flags, look for a card, listen."""
    asked = Handler.asked = parser().parse_args()
    say("** ComfyUI startup time: 2026-06-16 20:55:14.000")
    if asked.user_directory and not Path(asked.user_directory).is_dir():
        sys.exit(f"main.py: error: The path '{asked.user_directory}' does not exist.")
    if not asked.cpu and not os.environ.get("CUDA_VISIBLE_DEVICES"):
        sys.exit("RuntimeError: No CUDA GPUs are available")
    say(f"To see the GUI go to: http://{asked.listen}:{asked.port}")
    ThreadingHTTPServer((asked.listen, asked.port), Handler).serve_forever()


def say(line: str) -> None:
    """To its log, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
