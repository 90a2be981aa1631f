"""Asking the pages of a SlotServe to let this machine join."""

import http.client
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from wire.host_settings import TOLD_TO_HOSTS

ASK_SECONDS = 20.0
MOST_BYTES = 2**20
MOST_WORDS = 500  # of a refusal
_NEEDED = ("DATABASE_URL", "REDIS_URL", "SLOTSERVE_HOST_KEY")
NO_PAGES = "{} is no address of SlotServe's pages: give https://… as a browser."
NO_SLOTSERVE = "What answered is not a SlotServe of this release."


class JoinError(Exception):
    """Why this machine could not join: one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Told:
    """The host that this machine is now, and its settings."""

    key: str
    name: str
    address: str
    version: str
    environment: dict[str, str]


def ask(url: str, token: str, machine: str = "", addresses: Collection[str] = ()) -> Told:
    """Exchange the token. Passwords come back, so plain HTTP goes over private networks alone.

    With the same secret `machine` the same token may be exchanged again: an answer may get lost.
    `addresses` are its own: a token for another one is not used.
    """
    _refuse_public_http(url)
    said = {"token": token, "machine": machine, "addresses": list(addresses)}
    request = urllib.request.Request(  # noqa: S310 - http and https alone, checked above
        f"{url.rstrip('/')}/api/v1/hosts/join/",
        data=json.dumps(said).encode(),
        headers={"Content-Type": "application/json", "Accept": "application/json"},
        method="POST",
    )
    opener = urllib.request.build_opener(_NoRedirect(), urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=ASK_SECONDS) as answer:
            return _told(answer.read(MOST_BYTES))
    except urllib.error.HTTPError as error:
        raise JoinError(_refused(url, error)) from error
    except http.client.InvalidURL as error:
        raise JoinError(NO_PAGES.format(url)) from error
    except http.client.HTTPException as error:
        raise JoinError(NO_SLOTSERVE) from error
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        words = f"{url} cannot be reached from here ({reason}): check the address."
        raise JoinError(words) from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token goes to nobody but who was named."""

    def redirect_request(self, *_: Any) -> None:
        """Not followed."""


def _refuse_public_http(url: str) -> None:
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError as error:
        raise JoinError(NO_PAGES.format(url)) from error
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme != "http" or not parts.hostname:
        raise JoinError(NO_PAGES.format(url))
    try:
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise JoinError(NO_PAGES.format(url)) from error
    except OSError as error:
        words = f"{parts.hostname} is not known here ({error.strerror}): check the address."
        raise JoinError(words) from error
    if any(ip_address(str(each[4][0]).partition("%")[0]).is_global for each in found):
        raise JoinError(f"{url} is plain HTTP to a public address: passwords need https://….")


def _told(body: bytes) -> Told:
    try:
        said = json.loads(body)
        environment = {str(name): str(value) for name, value in said["environment"].items()}
        host = said["host"]
        told = Told(host["key"], host["name"], host["address"], said["version"], environment)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise JoinError(NO_SLOTSERVE) from error
    if not all(environment.get(name) for name in _NEEDED) or told.key != environment[_NEEDED[-1]]:
        raise JoinError(NO_SLOTSERVE)
    for name in environment:
        if name not in TOLD_TO_HOSTS:
            raise JoinError(f"What answered sets {name!r}, which no host needs: nothing is kept.")
    return told


def _refused(url: str, error: urllib.error.HTTPError) -> str:
    if 300 <= error.code < 400:
        return _plain(f"{url} leads to {error.headers.get('Location')}: give that address.")
    try:
        return _plain(str(json.loads(error.read(MOST_BYTES))["detail"]))
    except (ValueError, KeyError, TypeError, OSError, RecursionError, http.client.HTTPException):
        return f"{url} answered {error.code}: is that the address of SlotServe's pages?"


def _plain(words: str) -> str:
    """Nothing that a terminal would obey: who answers may be anybody."""
    return "".join(sign if sign.isprintable() else "�" for sign in words[:MOST_WORDS])
