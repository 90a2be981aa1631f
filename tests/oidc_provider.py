"""An OpenID provider on a real socket: one person, whom it knows by what the test says."""

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

CLIENT = {"client_id": "slotserve", "secret": "provider's secret"}
TOKEN = "the provider's token"


@dataclass
class Provider:
    """What it says of the person, and what it was asked for tokens."""

    person: object
    url: str = ""
    asked: list[dict[str, list[str]]] = field(default_factory=list)
    description: dict[str, Any] = field(default_factory=dict)  # besides what an honest one says
    body: bytes | None = None  # in place of its description
    moved_to: str = ""  # where its description is said to be
    token: object = field(default_factory=lambda: {"access_token": TOKEN, "token_type": "Bearer"})

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
            told = {f"{name}_endpoint": f"{url}/{path}" for name, path in ends.items()}
            self._describe({"issuer": url, "jwks_uri": f"{url}/keys", **told})
        elif self.path.startswith("/authorize?"):
            wish = dict(parse_qsl(urlsplit(self.path).query))
            back = urlencode({"code": "c", "state": wish["state"]})
            self._lead_to(f"{wish['redirect_uri']}?{back}")
        elif self.headers["Authorization"] == f"Bearer {TOKEN}":
            self._answer(self.provider.person)
        else:
            self._answer({"error": "invalid_token"}, HTTPStatus.UNAUTHORIZED)

    def do_POST(self) -> None:
        """A token for a code."""
        size = int(self.headers["Content-Length"])
        self.provider.asked.append(parse_qs(self.rfile.read(size).decode()))
        self._answer(self.provider.token)

    def log_message(self, *_: object) -> None:
        """It says nothing."""

    def _describe(self, honest: dict[str, Any]) -> None:
        provider = self.provider
        if provider.moved_to:
            self._lead_to(provider.moved_to)
            return
        body = json.dumps({**honest, **provider.description}).encode()
        self._send(body if provider.body is None else provider.body, HTTPStatus.OK)

    def _lead_to(self, address: str) -> None:
        self.send_response(HTTPStatus.FOUND)
        self.send_header("Location", address)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, value: object, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send(json.dumps(value).encode(), status)

    def _send(self, body: bytes, status: HTTPStatus) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # nobody reads on
            self.wfile.write(body)


def led_to(answer: Any) -> tuple[str, dict[str, str]]:
    """Where a page leads a browser at once, and what it asks there."""
    address: str = answer["Refresh"].removeprefix("0; url=")
    return address, dict(parse_qsl(urlsplit(address).query))


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
