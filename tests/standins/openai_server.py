"""The HTTP half of the stand-ins for vLLM and SGLang: models, chat, keys."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Served:
    """What the server answers to whom."""

    name: str
    names: tuple[str, ...]
    max_model_len: int
    api_key: str | None
    is_guarded: Callable[[str], bool]
    unauthorized: bytes
    checks_names: bool = False
    owned_by: str = "vllm"
    is_up: Callable[[], bool] = field(default=lambda: True)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    served: Served

    def do_GET(self) -> None:
        """Health and models."""
        path = self.path.partition("?")[0]
        if not self._is_allowed(path):
            return
        if path == "/health":
            self._say(200 if self.served.is_up() else 503, b"")
        elif path == "/v1/models":
            self._say_json(_models(self.served))
        else:
            self._say_json({"detail": "Not Found"}, 404)

    def do_POST(self) -> None:
        """Chats, in one piece or as a stream."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self._is_allowed(self.path):
            return
        if self.path != "/v1/chat/completions":
            self._say_json({"detail": "Not Found"}, 404)
            return
        asked: dict[str, Any] = json.loads(body)
        named = asked.get("model")
        if self.served.checks_names and named and named not in self.served.names:
            message = f"The model `{named}` does not exist."
            error = {"message": message, "type": "NotFoundError", "param": None, "code": 404}
            self._say_json({"error": error}, 404)
        elif asked.get("stream"):
            self._stream()
        else:
            self._say_json(_completion(self.served))

    def log_message(self, *args: Any) -> None:
        """Nothing: what they write of each request is not of interest."""

    def _is_allowed(self, path: str) -> bool:
        key = f"Bearer {self.served.api_key}"
        if self.served.api_key is None or not self.served.is_guarded(path):
            return True
        if self.headers.get("Authorization") == key:
            return True
        self._say(401, self.served.unauthorized)
        return False

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        for word in ("Hello", " there"):
            delta = {"choices": [{"index": 0, "delta": {"content": word}}]}
            self.wfile.write(f"data: {json.dumps(delta)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _say_json(self, told: Mapping[str, Any], status: int = 200) -> None:
        self._say(status, json.dumps(told).encode())

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve(address: str, port: int, served: Served) -> None:
    """Listen and answer for ever."""
    Handler.served = served
    ThreadingHTTPServer((address, port), Handler).serve_forever()


def _models(served: Served) -> dict[str, Any]:
    cards = [
        {
            "id": name,
            "object": "model",
            "created": int(time.time()),
            "owned_by": served.owned_by,
            "root": served.name,
            "max_model_len": served.max_model_len,
        }
        for name in served.names
    ]
    return {"object": "list", "data": cards}


def _completion(served: Served) -> dict[str, Any]:
    message = {"role": "assistant", "content": "Hello there"}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": served.names[0],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }
