"""An OpenID provider on a real socket: one person, whom it knows by what the test says."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

CLIENT = {"client_id": "slotserve", "secret": "provider's secret"}
TOKEN = "the provider's token"


@dataclass
class Provider:
    """What it says of the person, and what it was asked for tokens."""

    person: dict[str, Any]
    url: str = ""
    asked: list[dict[str, list[str]]] = field(default_factory=list)

    def apps(self) -> dict[str, Any]:
        """SOCIALACCOUNT_PROVIDERS that use it."""
        settings = {"server_url": self.url, "oauth_pkce_enabled": True}
        app = {"provider_id": "oidc", "name": "Provider", **CLIENT, "settings": settings}
        return {"openid_connect": {"APPS": [app]}}


class _Talk(http.server.BaseHTTPRequestHandler):
    provider: Provider

    def do_GET(self) -> None:
        """Its description, or the person."""
        url = self.provider.url
        if self.path == "/.well-known/openid-configuration":
            ends = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
            self._answer({f"{name}_endpoint": f"{url}/{path}" for name, path in ends.items()})
        elif self.headers["Authorization"] == f"Bearer {TOKEN}":
            self._answer(self.provider.person)
        else:
            self._answer({"error": "invalid_token"}, HTTPStatus.UNAUTHORIZED)

    def do_POST(self) -> None:
        """A token for a code."""
        size = int(self.headers["Content-Length"])
        self.provider.asked.append(parse_qs(self.rfile.read(size).decode()))
        self._answer({"access_token": TOKEN, "token_type": "Bearer"})

    def log_message(self, *_: object) -> None:
        """It says nothing."""

    def _answer(self, value: dict[str, Any], status: HTTPStatus = HTTPStatus.OK) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def oidc_provider(**person: Any) -> Iterator[Provider]:
    """One that listens on loopback."""
    provider = Provider(person={"sub": "1", **person})
    talk = type("Talk", (_Talk,), {"provider": provider})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), talk) as server:
        provider.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
